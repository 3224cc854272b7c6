package sqstest

import (
	"strings"
	"unicode/utf8"
)

// What SQS allows, from its documentation.
const (
	maxMessageBytes = 1 << 20 // a message, and the total of a batch
	maxBatch        = 10
	maxVisibility   = 43200
	maxDelay        = 900
	maxWait         = 20
	maxInFlight     = 120_000
	maxAttributes   = 10
	maxIDLength     = 128
)

// legalText reports whether SQS takes a text as a body or a String value.
func legalText(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < 0x20 && c != '\t' && c != '\n' && c != '\r' {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r == 0xFFFE || r == 0xFFFF {
			return false
		}
		i += size
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// onlyOf reports whether s is made of letters, digits and the others given.
func onlyOf(s, others string) bool {
	for i := 0; i < len(s); i++ {
		if !alphanumeric(s[i]) && strings.IndexByte(others, s[i]) < 0 {
			return false
		}
	}
	return true
}

// legalQueueName: letters, digits, - and _, at most 80 with the suffix .fifo.
func legalQueueName(s string) bool {
	stem := strings.TrimSuffix(s, ".fifo")
	return stem != "" && len(s) <= 80 && onlyOf(stem, "-_")
}

// legalID is for message group and deduplication ids.
func legalID(s string) bool {
	return len(s) <= maxIDLength && onlyOf(s, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
}

// legalEntryID is for the ids of batch entries.
func legalEntryID(s string) bool { return s != "" && len(s) <= 80 && onlyOf(s, "-_") }

func legalAttributeName(s string) bool {
	lower := strings.ToLower(s)
	switch {
	case s == "", len(s) > 256, !onlyOf(s, "_-."),
		strings.HasPrefix(lower, "aws."), strings.HasPrefix(lower, "amazon."),
		s[0] == '.', s[len(s)-1] == '.', strings.Contains(s, ".."):
		return false
	}
	return true
}

// legalNumber takes decimal notation with an exponent; the range is not checked.
func legalNumber(s string) bool {
	s = unsigned(s)
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(s), "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	if !allDigits(digits) {
		return false
	}
	return !hasExponent || allDigits(unsigned(exponent))
}

// unsigned cuts one sign off.
func unsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
