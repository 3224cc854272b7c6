package textedit

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Edit is a fault of a line or two.
type Edit struct {
	Name     string
	File     string // from the root of the tree
	Old, New string // Old must be there exactly once
}

// apply returns the file with the fault in it.
func (e Edit) apply(text []byte) ([]byte, error) {
	if n := strings.Count(string(text), e.Old); n != 1 {
		return nil, fmt.Errorf("%s: the code to edit is %d times in %s: adapt the edit to the code", e.Name, n, e.File)
	}
	return []byte(strings.Replace(string(text), e.Old, e.New, 1)), nil
}

// Check reports an edit that no longer fits the tree, or whose result is not Go.
func (e Edit) Check(tree string) error {
	text, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(e.File)))
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	broken, err := e.apply(text)
	if err != nil {
		return err
	}
	if _, err := parser.ParseFile(token.NewFileSet(), e.File, broken, parser.SkipObjectResolution); err != nil {
		return fmt.Errorf("%s: the edited file is not Go: %w", e.Name, err)
	}
	return nil
}

// Put puts the fault into a tree; undo takes it out again and may be called more than once.
func (e Edit) Put(tree string) (undo func() error, err error) {
	path := filepath.Join(tree, filepath.FromSlash(e.File))
	text, err := os.ReadFile(path) //nolint:gosec // a file of the copy
	if err != nil {
		return nil, err
	}
	broken, err := e.apply(text)
	if err != nil {
		return nil, err
	}
	write := func(b []byte) error { return os.WriteFile(path, b, 0o600) }
	if err := write(broken); err != nil {
		return nil, errors.Join(err, write(text))
	}
	return func() error { return write(text) }, nil
}

// CopyTree copies what git knows or would add below root, or with commit the last commit; the
// checkout is never touched.
func CopyTree(ctx context.Context, root, tree string, commit bool) error {
	script := `git ls-files -co --exclude-standard -z | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done | tar -c --null -T - | tar -x -C "$0"`
	if commit {
		script = `git archive HEAD | tar -x -C "$0"`
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script, tree)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	return cmd.Run()
}
