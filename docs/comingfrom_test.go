package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testNames returns every test function of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		code, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(code, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Each row of a table that says "shown by" names tests that exist, or says that something is
// missing. make coming-from runs them.
func TestComingFromNamesTestsThatExist(t *testing.T) {
	pages, err := filepath.Glob("coming-from/*.md")
	if err != nil {
		t.Fatal(err)
	}
	names, rows := testNames(t), 0
	for _, page := range append(pages, "coming-from.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		rows += shownRows(t, string(text), names)
	}
	if rows < 180 {
		t.Errorf("only %d rows were found", rows)
	}
}

// shownRows checks the rows of a page, and counts them.
func shownRows(t *testing.T, page string, names map[string]bool) (rows int) {
	t.Helper()
	test := regexp.MustCompile("`(Test\\w+)`")
	inside := false
	for row := range strings.SplitSeq(page, "\n") {
		cells := strings.Split(row, "|")
		last := strings.TrimSpace(cells[max(0, len(cells)-2)])
		switch {
		case len(cells) < 4:
			inside = false
			continue
		case last == "shown by":
			inside = true
			continue
		case !inside || strings.HasPrefix(last, "---"):
			continue
		}
		rows++
		found := test.FindAllStringSubmatch(last, -1)
		for _, m := range found {
			if !names[m[1]] {
				t.Errorf("no test %s, named by %s", m[1], row)
			}
		}
		if len(found) == 0 && !strings.Contains(row, "**not yet**") && !strings.Contains(row, "out of scope") {
			t.Errorf("no test shows it: %s", row)
		}
	}
	return rows
}
