package faultindex

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tree = `-- faults/requirements.txt
# comment
A Shutdown
F-A01 * One
F-A02   Two
F-A03   Three

M Later (not built)
F-M01 * Four
-- a/a_test.go
package a

// F-A01, F-Z99: of a test.
func TestOne(t *testing.T) {
	helper(t)
}

func TestTwo(t *testing.T) {
	// F-A01 inside
	kit.Run(t)
}

// No part of the fault suite: it needs an account.
func TestElsewhere(t *testing.T) {
	kit.Run(t)
}

func helper(t *testing.T) {}

// F-A03 at nothing that runs.
func unused() {}

// F-A03 at a variable.
var x = 1
-- kittest/kit.go
package kit

func Run(t testing.TB) { for _, c := range []func(testing.TB){check} { c(t) } }

// F-A02
func check(t testing.TB) {}
-- b/go.mod
module b
-- b/b_test.go
package b

// F-A03: in another module.
func TestB(t *testing.T) {}
`

func write(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for part := range strings.SplitSeq(tree[3:], "\n-- ") {
		name, text, _ := strings.Cut(part, "\n")
		text = strings.Replace(text, "package a\n", "package a\nimport kit \""+module+"kittest\"\n", 1)
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTestsAreFoundByTheirComments(t *testing.T) {
	x, err := Read(write(t))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string][]string{"F-A01": {"TestOne", "TestTwo"}, "F-A02": {"TestTwo"}, "F-A03": nil} {
		var got []string
		for _, test := range x.Tests(id) {
			got = append(got, test.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	if u := x.Untested(); len(u) != 1 || u[0].ID != "F-A03" {
		t.Errorf("untested: %v", u)
	}
	for _, want := range []string{"F-Z99 is not in", "F-A03 at unused", "at no function"} {
		if !slices.ContainsFunc(x.Stray, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q is not told: %q", want, x.Stray)
		}
	}
}

func TestRequirementsAreSelectedByTheBeginningOfTheirID(t *testing.T) {
	x, err := Read(write(t))
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]int{"": 4, "F-A01": 1, "F-A": 3, "F-A01,F-M": 2, "F-A01|F-A": 3} {
		if got, err := x.Select(words); err != nil || len(got) != want {
			t.Errorf("%q: %v, %v; want %d", words, got, err, want)
		}
	}
	if _, err := x.Select("F-B"); err == nil {
		t.Error("nothing begins with F-B, and nothing was said")
	}
	if got := x.ByPackage(x.Requirements); got["./a"] != "^(TestOne|TestTwo)$" || len(got) != 1 {
		t.Errorf("packages: %v", got)
	}
}

// The module's own list and comments: each id is known, each comment is a test's.
func TestNoCommentOfThisModuleIsStray(t *testing.T) {
	x, err := Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Requirements) != 118 {
		t.Errorf("%d requirements, want 118", len(x.Requirements))
	}
	for _, s := range x.Stray {
		t.Error(s)
	}
	for _, r := range x.Untested() {
		t.Errorf("%s (%s) has no test", r.ID, r.Title)
	}
}
