package keytext_test

import (
	"testing"

	"github.com/longshore-go/longshore/internal/keytext"
)

func TestKeysForPeople(t *testing.T) {
	for key, want := range map[string]string{
		"c-91": "c-91", "": "", "größe 4": "größe 4", "two\nlines": "two\nlines", "0x61": "0x61",
		"i11p\x00\x00\x00\x02": "0x6931317000000002", "\xff": "0xff", "esc\x1b[31m": "0x6573631b5b33316d",
	} {
		if got := keytext.Of([]byte(key)); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
		if !keytext.Names(want, []byte(key)) || !keytext.Names(key, []byte(key)) {
			t.Errorf("%q is not named by what is shown of it", key)
		}
	}
	if keytext.Names("0x61", []byte("a")) {
		t.Error("a key that can be read is named by its bytes in hex")
	}
	if keytext.Names("", nil) {
		t.Error("no key is named by an empty one")
	}
}
