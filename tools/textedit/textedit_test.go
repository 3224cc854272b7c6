package textedit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/tools/textedit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnEditIsPutInAndTakenOut(t *testing.T) {
	tree := t.TempDir()
	path := filepath.Join(tree, "a.go")
	const text = "package a\n\nvar x = 1\nvar y = 1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	undo, err := textedit.Edit{Name: "two", File: "a.go", Old: "x = 1", New: "x = 2"}.Put(tree)
	if err != nil || !strings.Contains(read(), "x = 2") {
		t.Fatalf("%v: %q", err, read())
	}
	for range 2 {
		if err := undo(); err != nil || read() != text {
			t.Errorf("%v: %q", err, read())
		}
	}
	for name, e := range map[string]textedit.Edit{
		"nowhere": {Name: "e", File: "a.go", Old: "z = 1"},
		"twice":   {Name: "e", File: "a.go", Old: " = 1"},
		"no file": {Name: "e", File: "b.go", Old: "x"},
		"not Go":  {Name: "e", File: "a.go", Old: "package a", New: "pack"},
	} {
		if err := e.Check(tree); err == nil || read() != text {
			t.Errorf("%s: %v", name, err)
		}
	}
}
