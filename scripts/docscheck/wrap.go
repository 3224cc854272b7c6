package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// source returns the block as a Go file. A //line directive lets the compiler's
// errors name the document.
func (b block) source(imports map[string]string) (string, error) {
	where := fmt.Sprintf("//line %s:%d\n", b.file, b.line)
	if !b.snippet {
		return where + b.code + "\n", nil
	}
	body := where + b.code + "\n"
	if _, err := parse("package snippet\n" + body); err != nil {
		body = "func _() {\n" + where + b.code + "\n}\n"
	}
	rest := body + "//line prelude:1\n" + b.prelude
	file, err := parse("package snippet\n" + rest)
	if err != nil {
		return "", err
	}
	var head strings.Builder
	head.WriteString("package snippet\n")
	for _, name := range packagesUsed(file) {
		if path, ok := imports[name]; ok {
			fmt.Fprintf(&head, "import %s %q\n", name, path)
		}
	}
	return head.String() + rest, nil
}

func parse(source string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), "snippet.go", source, 0)
}

// packagesUsed lists the X of every X.Y whose X is declared nowhere in the file.
func packagesUsed(file *ast.File) []string {
	unresolved := make(map[*ast.Ident]bool, len(file.Unresolved))
	for _, ident := range file.Unresolved {
		unresolved[ident] = true
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok && unresolved[x] {
				names = append(names, x.Name)
			}
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names)
}
