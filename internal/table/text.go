package table

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width returns how many columns of a terminal a text takes.
func Width(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth is 2 for wide East Asian characters and emoji, 0 for marks that combine with the
// character before.
func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}

// cut shortens a text to n columns, the last of them "…".
func cut(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	head, _ := split(s, max(n-1, 0))
	return head + "…"
}

// split divides a text after at most n columns.
func split(s string, n int) (head, tail string) {
	for i, r := range s {
		if n -= runeWidth(r); n < 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// wrap breaks a text into lines of at most n columns, between words where it can.
func wrap(s string, n int) (lines []string) {
	n = max(n, 2) // a wide character needs two
	for Width(s) > n {
		head, tail := split(s, n)
		if at := strings.LastIndexByte(head, ' '); at > 0 && !strings.HasPrefix(tail, " ") {
			head, tail = s[:at], s[at:]
		}
		lines = append(lines, strings.TrimRight(head, " "))
		s = strings.TrimLeft(tail, " ")
	}
	return append(lines, s)
}
