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

// Each row of coming-from.md names tests that exist, or says that something is missing.
func TestComingFromNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	names, rows := testNames(t), 0
	test := regexp.MustCompile("`(Test\\w+)`")
	for _, row := range strings.Split(string(page), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || strings.Contains(row, "---") || strings.TrimSpace(cells[3]) == "shown by" {
			continue
		}
		rows++
		found := test.FindAllStringSubmatch(cells[3], -1)
		for _, m := range found {
			if !names[m[1]] {
				t.Errorf("no test %s, named by %s", m[1], row)
			}
		}
		if len(found) == 0 && !strings.Contains(row, "**not yet**") && !strings.Contains(row, "out of scope") {
			t.Errorf("no test shows it: %s", row)
		}
	}
	if rows < 50 {
		t.Errorf("only %d rows were found", rows)
	}
}
