package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// codes reads the constants out of the sources of the root package and of config: the
// compiled packages cannot list them.
func codes(t *testing.T) []string {
	t.Helper()
	var found []string
	collect := func(n ast.Node) bool {
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
	}
	for _, source := range []string{"../errors.go", "../config/codes.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, collect)
	}
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

// firstProgram returns the first ```go block of a page and the line it ends at.
func firstProgram(t *testing.T, page string) (code string, end int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "```go\n")
	if !ok {
		t.Fatalf("%s has no program", page)
	}
	code, _, _ = strings.Cut(rest, "```")
	return code, strings.Count(before, "\n") + 1 + strings.Count(code, "\n")
}

func TestTheReadmeBeginsWithAProgramThatCompiles(t *testing.T) {
	code, end := firstProgram(t, "../README.md")
	if end > 50 {
		t.Errorf("the program ends at line %d, not on the first screen (50 lines)", end)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", file)
	cmd.Dir = ".." // imports are found by the module
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

var link = regexp.MustCompile(`\]\(([^)#]*)(?:#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	pages := []string{"../README.md"}
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "" || strings.Contains(m[1], "://") {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d links found", found)
	}
}
