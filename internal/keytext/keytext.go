package keytext

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of is the key as text: as it is where a person can read it, otherwise its bytes in hex
// after "0x". A key of four text bytes and a number in binary is the second kind.
func Of(key []byte) string {
	if Readable(key) {
		return string(key)
	}
	return "0x" + hex.EncodeToString(key)
}

// Readable reports whether the key is text without control characters.
func Readable(key []byte) bool {
	return utf8.Valid(key) && !strings.ContainsFunc(string(key), func(r rune) bool { return !unicode.IsPrint(r) && r != ' ' && r != '\t' && r != '\n' && r != '\r' })
}

// Names reports whether text means this key: the key itself, or what [Of] shows of one that
// cannot be read.
func Names(text string, key []byte) bool {
	return key != nil && (text == string(key) || !Readable(key) && strings.EqualFold(text, Of(key)))
}
