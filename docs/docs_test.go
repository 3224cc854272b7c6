package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// codes reads the constants out of the root package's source: the compiled
// package cannot list them.
func codes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			code, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, code)
		}
		return true
	})
	if len(found) < 30 {
		t.Fatalf("only %d codes found in errors.go", len(found))
	}
	return found
}

func TestEveryCodeHasAPageAndEveryPageACode(t *testing.T) {
	known := append(codes(t), "usage") // the command's own
	var paged []string
	for _, p := range ErrorPages() {
		paged = append(paged, p.Code)
		if !slices.Contains(known, p.Code) {
			t.Errorf("page %q is about no code", p.Code)
		}
		if p.Summary == "" || !strings.HasSuffix(p.Summary, ".") || len(p.Summary) > 80 {
			t.Errorf("page %q: summary %q must be one short sentence", p.Code, p.Summary)
		}
		if !strings.Contains(p.Text, "**Do**") {
			t.Errorf("page %q does not say what to do", p.Code)
		}
	}
	for _, code := range known {
		if !slices.Contains(paged, code) {
			t.Errorf("code %q has no page in reference/errors.md", code)
		}
	}
	if slices.Sort(paged); len(slices.Compact(paged)) != len(ErrorPages()) {
		t.Error("a code has two pages")
	}
}

func TestNearestCode(t *testing.T) {
	for asked, want := range map[string]string{"notfound": "not-found", "unreachible": "unreachable", "AUTH": "auth", "xyzzy": ""} {
		if got := Nearest(asked); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", asked, got, want)
		}
	}
}
