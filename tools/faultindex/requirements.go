package faultindex

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// List is where the requirements are, from the root of the module.
const List = "faults/requirements.txt"

// Requirement is one line of the list.
type Requirement struct {
	ID, Title string
	First     bool   // of the first rank
	Chapter   string // "A Shutdown and drain"
	Unbuilt   bool   // there is nothing yet that could hold or break it
}

func readRequirements(root string) ([]Requirement, error) {
	text, err := os.ReadFile(filepath.Join(root, List))
	if err != nil {
		return nil, err
	}
	line := regexp.MustCompile(`^(F-[A-Z]\d\d) ([* ]) (\S.*)$`)
	chapter := ""
	var all []Requirement
	seen := map[string]bool{}
	for n, l := range strings.Split(string(text), "\n") {
		m := line.FindStringSubmatch(l)
		switch {
		case l == "" || l[0] == '#':
		case m == nil && strings.HasPrefix(l, "F-"):
			return nil, fmt.Errorf("%s:%d: want \"F-A01 * title\", got %q", List, n+1, l)
		case m == nil:
			chapter = l
		case seen[m[1]]:
			return nil, fmt.Errorf("%s:%d: %s is there twice", List, n+1, m[1])
		default:
			seen[m[1]] = true
			all = append(all, Requirement{ID: m[1], First: m[2] == "*", Title: m[3], Chapter: chapter,
				Unbuilt: strings.Contains(chapter, "not built")})
		}
	}
	return all, nil
}
