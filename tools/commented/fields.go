package commented

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Fields lists the fields without a comment, as file:line: Type.field, of the struct types in
// a directory and below. A comment stands before the field or behind it, or before a
// neighbour and names it. What needs none: an embedded field and the only field of a type,
// which their types' comments explain, and a field with a tag, whose name is another format's.
// Tests and test servers are left out.
func Fields(dir string) (missing []string, err error) {
	fset := token.NewFileSet()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok {
				missing = append(missing, ofTypes(fset, g)...)
			}
		}
		return nil
	})
	return missing, err
}

// skipped are the folders of test servers and test data.
func skipped(name string) bool {
	return name == "testdata" || name == "transporttest" || strings.HasSuffix(name, "test") && name != "test"
}

func ofTypes(fset *token.FileSet, g *ast.GenDecl) (missing []string) {
	for _, spec := range g.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		s, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		if len(s.Fields.List) == 1 {
			continue
		}
		named := allComments(s)
		for _, f := range s.Fields.List {
			for _, name := range f.Names {
				if f.Tag == nil && text(f.Doc) == "" && text(f.Comment) == "" && !slices.Contains(named, name.Name) {
					missing = append(missing, fmt.Sprintf("%s: %s.%s", fset.Position(f.Pos()), t.Name.Name, name.Name))
				}
			}
		}
	}
	return missing
}

// allComments are the words of the comments that stand before fields.
func allComments(s *ast.StructType) (words []string) {
	for _, f := range s.Fields.List {
		words = append(words, strings.FieldsFunc(text(f.Doc), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })...)
	}
	return words
}

// text is what a comment says to people: of a linter's directive the reason behind it.
func text(c *ast.CommentGroup) (said string) {
	if c == nil {
		return ""
	}
	for _, one := range c.List {
		line := strings.TrimPrefix(one.Text, "//")
		if strings.HasPrefix(line, "nolint") {
			_, line, _ = strings.Cut(line, "//")
		}
		said += strings.TrimSpace(line)
	}
	return said
}
