package transport_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table in optional.go has every interface that is asked for by a type assertion, and
// nothing else; no code asks for an ability by an interface without a name, or for a
// transport by its name.
func TestTableOfOptionalInterfacesIsComplete(t *testing.T) {
	table := tableOf(t)
	declared := interfacesOf(t, "optional.go")
	asked := map[string][]string{}
	var nameless []string
	walk(t, func(path string, f *ast.File) {
		found := assertionsIn(path, f)
		for _, name := range found.named {
			asked[name] = append(asked[name], path)
		}
		nameless = append(nameless, found.nameless...)
	})
	if len(asked) < 20 {
		t.Fatalf("only %d interfaces are asked for: the test reads too little", len(asked))
	}
	for name, where := range asked {
		if !slices.Contains(table, name) {
			t.Errorf("transport.%s is asked for in %s and is not in the table of optional.go", name, where[0])
		}
	}
	for _, name := range table {
		if !slices.Contains(declared, name) {
			t.Errorf("%s is in the table and not declared in optional.go", name)
		}
		if asked[name] == nil && !embedded(t, name) {
			t.Errorf("%s is in the table and nobody asks for it", name)
		}
	}
	for _, name := range declared {
		if !slices.Contains(table, name) {
			t.Errorf("%s is declared in optional.go and is not in its table", name)
		}
	}
	for _, where := range nameless {
		t.Errorf("%s: give the interface a name in optional.go", where)
	}
}

// The finder sees what it has to see.
func TestAssertionsAreFound(t *testing.T) {
	const text = `package p
func f(src transport.Source) {
	_, _ = src.(transport.Browser)
	_, _ = src.(interface{ Depth() int })
	switch src.(type) {
	case transport.Scanner:
	case interface{ Done() }:
	}
	_, _ = other.(interface{ Timeout() bool })
}`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := assertionsIn("p.go", f)
	if !slices.Equal(found.named, []string{"Browser", "Scanner"}) || len(found.nameless) != 2 {
		t.Errorf("%+v", found)
	}
}

// tableOf reads the first column of the table.
func tableOf(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("optional.go")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^//\t([A-Z][A-Za-z]+) +(?:Source|Consumer|Publisher|Observer) `)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}

// interfacesOf lists the interfaces that a file declares.
func interfacesOf(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok {
			if _, ok := s.Type.(*ast.InterfaceType); ok {
				names = append(names, s.Name.Name)
			}
		}
		return true
	})
	return names
}

// walk reads all files of the module that are no tests.
func walk(t *testing.T, visit func(path string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bench" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			visit(path, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// assertions are the type assertions of a file that concern transports.
type assertions struct {
	named    []string // names of interfaces of package transport
	nameless []string // places where an interface without a name has an optional method
}

func assertionsIn(path string, f *ast.File) (found assertions) {
	note := func(x ast.Expr) {
		switch x := x.(type) {
		case *ast.SelectorExpr:
			if p, ok := x.X.(*ast.Ident); ok && p.Name == "transport" {
				found.named = append(found.named, x.Sel.Name)
			}
		case *ast.InterfaceType:
			for _, m := range x.Methods.List {
				if len(m.Names) > 0 && optionalMethod(m.Names[0].Name) {
					found.nameless = append(found.nameless, path+": "+m.Names[0].Name)
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				note(n.Type)
			}
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				if clause, ok := c.(*ast.CaseClause); ok {
					for _, x := range clause.List {
						note(x)
					}
				}
			}
		}
		return true
	})
	return found
}

// optionalMethod reports whether a method belongs to an ability of transports.
func optionalMethod(name string) bool {
	return slices.Contains([]string{"Backlog", "BlockedPartitions", "Browse", "BrowseCost", "Buffered", "Capabilities", "Check", "Consumers", "Declares", "Depth", "Describe", "Done",
		"Incarnation", "Leaving", "Locked", "Neighbour", "PartitionProgress", "Partitions", "Pause", "Peer", "Prepare", "Probe", "Publisher", "Remaining", "Resize", "Resume", "Scan", "Seek", "Settings", "Truncate", "ValidateOpen", "Vocabulary"}, name)
}

// embedded reports whether an interface is asked for as a part of another one.
func embedded(t *testing.T, name string) (found bool) {
	walk(t, func(_ string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if x, ok := n.(*ast.InterfaceType); ok {
				for _, m := range x.Methods.List {
					if s, ok := m.Type.(*ast.SelectorExpr); ok && len(m.Names) == 0 && s.Sel.Name == name {
						found = true
					}
				}
			}
			return true
		})
	})
	return found
}

// Tools ask for an ability; only the words for people may have the name of a transport.
func TestToolsAskForNoTransportByItsName(t *testing.T) {
	for _, dir := range []string{"../cmd/longshore", "../internal/doctor", "../admin"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) && (isName(b.X) || isName(b.Y)) {
					t.Errorf("%s compares with the name of a transport", file)
				}
				if c, ok := n.(*ast.CaseClause); ok && slices.ContainsFunc(c.List, isName) {
					t.Errorf("%s switches by the name of a transport", file)
				}
				return true
			})
		}
	}
}

func isName(x ast.Expr) bool {
	l, ok := x.(*ast.BasicLit)
	return ok && slices.Contains([]string{`"rabbitmq"`, `"kafka"`, `"aws_sqs"`, `"memory"`}, l.Value)
}
