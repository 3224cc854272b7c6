package faultindex

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/longshore-go/longshore/"

// function is one declaration in a file that is only for tests.
type function struct {
	test Test
	is   bool // a test, not a helper of tests
	ids  []string
	uses []string // keys of functions that it names
}

// found is what a module's test files have, by folder and name.
type found struct {
	functions map[string]*function
	stray     []string
}

func scan(root string) (*found, error) {
	f := &found{functions: map[string]*function{}}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			return f.enter(p, rel, d.Name())
		}
		if forTests(rel) {
			return f.read(p, rel)
		}
		return nil
	})
	return f, err
}

// enter leaves out what go test ./... does not see.
func (f *found) enter(p, rel, name string) error {
	if rel == "." {
		return nil
	}
	if name[0] == '.' || name[0] == '_' || name == "testdata" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
		return fs.SkipDir // a module of its own
	}
	return nil
}

// forTests says whether a file is compiled for tests only: those, and the packages
// that tests import (transport/transporttest).
func forTests(rel string) bool {
	return strings.HasSuffix(rel, "_test.go") || strings.HasSuffix(rel, ".go") && strings.HasSuffix(path.Dir(rel), "test")
}

func (f *found) read(p, rel string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, p, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	dir := path.Dir(rel)
	imports := importsOf(file)
	var inside []*ast.CommentGroup
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		x := &function{test: Test{Package: "./" + dir, Name: fn.Name.Name, File: rel, Line: set.Position(fn.Pos()).Line},
			is: isTest(rel, fn), uses: uses(fn, dir, imports)}
		for _, group := range file.Comments {
			if group == fn.Doc || group.Pos() >= fn.Pos() && group.End() <= fn.End() {
				inside = append(inside, group)
				x.ids = append(x.ids, idsIn(group)...)
			}
		}
		key := dir + "." + fn.Name.Name
		if fn.Recv == nil { // no method carries an id: see below
			f.functions[key] = x
			continue
		}
		if len(x.ids) > 0 {
			f.stray = append(f.stray, fmt.Sprintf("%s:%d: %v at a method, which is not a test", rel, x.test.Line, x.ids))
		}
	}
	for _, group := range file.Comments {
		if ids := idsIn(group); len(ids) > 0 && !slices.Contains(inside, group) {
			f.stray = append(f.stray, fmt.Sprintf("%s:%d: %v at no function", rel, set.Position(group.Pos()).Line, ids))
		}
	}
	return nil
}

func idsIn(group *ast.CommentGroup) []string {
	return regexp.MustCompile(`\bF-[A-Z]\d\d\b`).FindAllString(group.Text(), -1)
}

// outside is said in the comment of a test that the fault suite does not run, although it
// uses what carries ids.
const outside = "No part of the fault suite"

func isTest(rel string, fn *ast.FuncDecl) bool {
	return !strings.Contains(fn.Doc.Text(), outside) && strings.HasSuffix(rel, "_test.go") && fn.Recv == nil && fn.Name.Name != "TestMain" &&
		(strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) && len(fn.Type.Params.List) == 1
}

// importsOf are the module's own packages that a file imports: name to folder.
func importsOf(file *ast.File) map[string]string {
	out := map[string]string{}
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.HasPrefix(p, module) {
			continue
		}
		dir := strings.TrimPrefix(p, module)
		name := path.Base(dir)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[name] = dir
	}
	return out
}

// uses lists the functions of this package and of others that fn names.
func uses(fn *ast.FuncDecl, dir string, imports map[string]string) []string {
	var out []string
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && imports[pkg.Name] != "" {
				out = append(out, imports[pkg.Name]+"."+n.Sel.Name)
			}
			ast.Inspect(n.X, func(x ast.Node) bool { // not Sel: a method is not a function of its name
				if id, ok := x.(*ast.Ident); ok {
					out = append(out, dir+"."+id.Name)
				}
				return true
			})
		case *ast.Ident:
			out = append(out, dir+"."+n.Name)
		}
		return true
	})
	return out
}

// attribute gives each id to the tests that carry it, or that use a helper which does.
func (f *found) attribute() map[string][]Test {
	out := map[string][]Test{}
	carried := map[string]bool{}
	for _, fn := range f.functions {
		if !fn.is {
			continue
		}
		for id, from := range f.reached(fn) {
			out[id] = append(out[id], fn.test)
			for _, key := range from {
				carried[id+key] = true
			}
		}
	}
	for key, fn := range f.functions {
		for _, id := range fn.ids {
			if !carried[id+key] {
				f.stray = append(f.stray, fmt.Sprintf("%s:%d: %s at %s, which no test uses", fn.test.File, fn.test.Line, id, fn.test.Name))
			}
		}
	}
	return out
}

// reached are the ids of a function and of all that it uses, with the functions that
// carry them.
func (f *found) reached(start *function) map[string][]string {
	ids := map[string][]string{}
	seen := map[string]bool{}
	var visit func(key string, fn *function)
	visit = func(key string, fn *function) {
		if fn == nil || seen[key] || fn.is && fn != start {
			return
		}
		seen[key] = true
		for _, id := range fn.ids {
			ids[id] = append(ids[id], key)
		}
		for _, used := range fn.uses {
			visit(used, f.functions[used])
		}
	}
	visit(strings.TrimPrefix(start.test.Package, "./")+"."+start.test.Name, start)
	return ids
}
