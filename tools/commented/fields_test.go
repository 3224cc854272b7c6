package commented_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/tools/commented"
)

// Each field of the engine and of the drivers has a comment.
func TestFieldsOfEngineAndDrivers(t *testing.T) {
	for _, dir := range []string{"container", "lifecycle", "transport"} {
		missing, err := commented.Fields(filepath.Join("../..", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range missing {
			t.Errorf("%s has no comment that says why it exists", m)
		}
	}
}

// A field counts as commented by a comment before or behind it, and by nothing else.
func TestWhatCountsAsAComment(t *testing.T) {
	dir := t.TempDir()
	src := `package p

type T struct {
	sync.Mutex
	// Before.
	before int
	behind int // behind
	a, b   int // both

	// First and second are the two ends.
	first  int
	second int

	wire   int "json"
	reason int //nolint:all // of calls

	none int
	bad  int //nolint:all
}

type only struct{ field int }
`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	missing, err := commented.Fields(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range missing {
		names = append(names, m[strings.LastIndex(m, " ")+1:])
	}
	if want := []string{"T.none", "T.bad"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
