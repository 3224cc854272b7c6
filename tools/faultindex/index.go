package faultindex

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Test is a test function.
type Test struct {
	Package string // "./transport/kafka"
	Name    string
	File    string // from the root
	Line    int
}

// Index is what the list and the tests say together.
type Index struct {
	Requirements []Requirement
	// Stray are comments with an id that belong to no test, and ids that are not in
	// the list: each would be believed to be a test.
	Stray []string

	tests map[string][]Test
}

// Read reads the module whose top folder is root.
func Read(root string) (*Index, error) {
	requirements, err := readRequirements(root)
	if err != nil {
		return nil, err
	}
	found, err := scan(root)
	if err != nil {
		return nil, err
	}
	attributed := found.attribute()
	x := &Index{Requirements: requirements, tests: map[string][]Test{}, Stray: found.stray}
	for id, tests := range attributed {
		if !slices.ContainsFunc(requirements, func(r Requirement) bool { return r.ID == id }) {
			x.Stray = append(x.Stray, fmt.Sprintf("%s:%d: %s is not in %s", tests[0].File, tests[0].Line, id, List))
			continue
		}
		slices.SortFunc(tests, func(a, b Test) int {
			return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
		x.tests[id] = tests
	}
	slices.Sort(x.Stray)
	return x, nil
}

// Tests are those that name the requirement, by package and place.
func (x *Index) Tests(id string) []Test { return x.tests[id] }

// Untested are the requirements that no test names, without those that cannot be
// tested yet.
func (x *Index) Untested() []Requirement {
	var out []Requirement
	for _, r := range x.Requirements {
		if len(x.tests[r.ID]) == 0 && !r.Unbuilt {
			out = append(out, r)
		}
	}
	return out
}

// Select returns the requirements whose id begins with one of the words, separated
// by commas or "|": "F-C01", "F-C", "F-C01,F-H". Empty selects all.
func (x *Index) Select(words string) ([]Requirement, error) {
	if words == "" {
		return x.Requirements, nil
	}
	var out []Requirement
	for _, word := range strings.FieldsFunc(words, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
		before := len(out)
		for _, r := range x.Requirements {
			if strings.HasPrefix(r.ID, word) && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("no requirement begins with %q; %s has them all", word, List)
		}
	}
	return out, nil
}

// ByPackage collects the tests of requirements: a pattern for go test -run for each
// package.
func (x *Index) ByPackage(requirements []Requirement) map[string]string {
	names := map[string][]string{}
	for _, r := range requirements {
		for _, t := range x.tests[r.ID] {
			if !slices.Contains(names[t.Package], t.Name) {
				names[t.Package] = append(names[t.Package], t.Name)
			}
		}
	}
	out := map[string]string{}
	for pkg, list := range names {
		out[pkg] = Pattern(list)
	}
	return out
}

// Pattern matches exactly these tests.
func Pattern(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}
