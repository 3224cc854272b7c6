package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"
)

// An edit that no longer fits the code would be noticed by the next run of the
// saboteur only, and that takes half an hour.
func TestEveryEditFitsOnce(t *testing.T) {
	t.Parallel()
	for _, e := range edits() {
		whole, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(e.file)))
		if err != nil {
			t.Errorf("%s: %v", e.name, err)
			continue
		}
		broken, err := e.apply(whole)
		if err != nil {
			t.Errorf("%s: %v", e.name, err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), e.file, broken, parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: what is broken is no Go: %v", e.name, err)
		}
	}
}
