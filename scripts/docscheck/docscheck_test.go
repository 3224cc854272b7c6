package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// check runs docscheck over a module with one README.
func check(t *testing.T, readme string) error {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "module example.com/m\n\ngo 1.26\n",
		"lib/lib.go":       "package lib\n\nfunc Do(n int) error { return nil }\n",
		"README.md":        readme,
		"docs/a/deeper.md": "no code\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "~~~", "```")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	left := filepath.Join(root, prefix+"0-killed")
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), root)
	if found, _ := filepath.Glob(filepath.Join(root, prefix+"*")); len(found) > 0 {
		t.Errorf("folders are left: %v", found)
	}
	return err
}

func TestCodeThatCompiles(t *testing.T) {
	for name, readme := range map[string]string{
		"program":      "# x\n~~~go\npackage main\n\nimport \"example.com/m/lib\"\n\nfunc main() { _ = lib.Do(1) }\n~~~\n",
		"statements":   "~~~go snippet\nerr := lib.Do(1)\nunused := time.Second\n~~~\n",
		"declarations": "~~~go snippet\nfunc f() error { return lib.Do(1) }\n~~~\n",
		"prelude":      "<!-- docscheck\nvar n int\n-->\n~~~go snippet\n_ = lib.Do(n)\n~~~\n",
		"ignored":      "~~~go ignore pseudo code\nthis is not Go\n~~~\n",
		"other":        "~~~sh\nmake test\n~~~\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := check(t, readme); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCodeThatDoesNotCompileIsNamedByDocumentAndLine(t *testing.T) {
	for name, tc := range map[string]struct{ readme, want string }{
		"program":      {"# x\n\n~~~go\npackage main\n\nfunc main() { nothing() }\n~~~\n", "README.md:6"},
		"statements":   {"~~~go snippet\nx := 1\n_ = lib.Do(\"text\")\n~~~\n", "README.md:3"},
		"declarations": {"~~~go snippet\nfunc f() int { return lib.Do(1) }\n~~~\n", "README.md:2"},
		"syntax":       {"~~~go snippet\nfor {{\n~~~\n", "README.md:2"},
		"unmarked":     {"~~~go\nx := 1\n~~~\n", "README.md:2: this ```go block is not a whole program"},
		"no reason":    {"~~~go ignore\nx := 1\n~~~\n", "README.md:2"},
		"no end":       {"~~~go\npackage main\n", "README.md:1: no ``` ends"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := check(t, tc.readme); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestWordsAreCountedWithoutCodeCommentsAndBars(t *testing.T) {
	text := "# One two\n<!-- not\nthese -->\n| three | 4 |\n|---|---|\n```go\nnot := this\n```\nfive – six.\n<!-- case scale -->\n| 7 |\n<!-- end -->\n"
	if n := words(text); n != 6 {
		t.Errorf("%d words", n)
	}
	if !counted("README.md") || !counted("docs/reference/cli.md") || counted("docs/adr/0001-x.md") || counted("docs/faults.md") || counted("CONTRIBUTING.md") {
		t.Error("the wrong documents are counted")
	}
}
