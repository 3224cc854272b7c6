package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"
)

// An edit that no longer fits the code is noticed here, and not by the next `make planted`.
func TestEveryEditFitsOnce(t *testing.T) {
	t.Parallel()
	if n := len(faults()); n < 14 {
		t.Errorf("%d faults, want at least ten reverted fixes, and the faults 2, 5, 6 and 38", n)
	}
	for _, f := range faults() {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(f.file)))
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		broken, err := f.apply(text)
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), f.file, broken, parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: the edited file is not Go: %v", f.name, err)
		}
	}
}
