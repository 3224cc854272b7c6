package envelope

import (
	"encoding/base64"
	"unicode/utf8"
)

// Form says how a body was packed. The values are what an envelope holds.
type Form string

// The forms.
const (
	Plain  Form = ""      // as it is
	Nil    Form = "n"     // no body; a placeholder stands for it
	Empty  Form = "e"     // an empty body; a placeholder stands for it
	Base64 Form = "64"    // base64, because a character is forbidden
	Claim  Form = "claim" // the body is in a store, what is here says where
)

func (f Form) known() bool {
	switch f {
	case Plain, Nil, Empty, Base64, Claim:
		return true
	}
	return false
}

// Placeholder stands for a body that a broker would refuse because it is empty.
const Placeholder = "-"

// LegalText reports whether a text is UTF-8 of the characters that XML 1.0 has,
// which is what SQS takes.
func LegalText[T string | []byte](s T) bool {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < 0x20 && c != '\t' && c != '\n' && c != '\r' {
				return false
			}
			i++
			continue
		}
		r, size := decode(s, i)
		if size <= 1 || r == 0xFFFE || r == 0xFFFF {
			return false
		}
		i += size
	}
	return true
}

// decode reads one rune of a string or of bytes without a copy of the rest.
func decode[T string | []byte](s T, i int) (rune, int) {
	var b [utf8.UTFMax]byte
	n := copy(b[:], s[i:min(i+utf8.UTFMax, len(s))])
	return utf8.DecodeRune(b[:n])
}

// PackBody makes a non-empty legal text of any body.
func PackBody(body []byte) (text string, form Form) {
	switch {
	case body == nil:
		return Placeholder, Nil
	case len(body) == 0:
		return Placeholder, Empty
	case LegalText(body):
		return string(body), Plain
	}
	return base64.StdEncoding.EncodeToString(body), Base64
}

// UnpackBody is the way back; false if the text is not of the form, and then the
// body is the text.
func UnpackBody(text string, form Form) (body []byte, ok bool) {
	switch form {
	case Nil:
		if text == Placeholder {
			return nil, true
		}
	case Empty:
		if text == Placeholder {
			return []byte{}, true
		}
	case Base64:
		if b, err := base64.StdEncoding.DecodeString(text); err == nil {
			return b, true
		}
	case Plain:
		return []byte(text), true
	case Claim:
	}
	return []byte(text), false
}
