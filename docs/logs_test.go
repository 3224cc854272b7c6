package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logLine is a row of reference/logs.md.
type logLine struct {
	levels, fields []string
}

// anywhere may be in every line.
func anywhere() []string {
	return []string{"container", "source", "transport", "code", "error", "help", "repeated", "at", "message_ids",
		"user", "vhost", "address", "topic", "region", "endpoint", "argument", "want", "have"}
}

// logPage reads reference/logs.md: the lines, and every field that is explained.
func logPage(t *testing.T) (lines map[string]logLine, fields []string) {
	t.Helper()
	raw, err := os.ReadFile("reference/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "\n## Lines\n")
	first, second, ok := strings.Cut(rest, "\n## Fields\n")
	if !ok {
		t.Fatal("reference/logs.md has lost a section")
	}
	quoted := regexp.MustCompile("`([a-z_]+)`")
	names := func(cell string) (found []string) {
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			found = append(found, m[1])
		}
		return found
	}
	lines = map[string]logLine{}
	for _, row := range strings.Split(first, "\n") {
		if cells := strings.Split(row, "|"); len(cells) == 5 && !strings.Contains(row, "---") && strings.TrimSpace(cells[1]) != "line" {
			lines[strings.TrimSpace(cells[1])] = logLine{strings.Fields(cells[2]), names(cells[3])}
		}
	}
	for _, row := range strings.Split(second, "\n") {
		if cells := strings.Split(row, "|"); len(cells) == 4 {
			fields = append(fields, names(cells[1])...)
		}
	}
	return lines, fields
}

// logCalls reads the sources: what is given to zap as the name of a field, and each
// phrase with its level.
func logCalls(t *testing.T) (fields map[string]string, phrases map[string]string) {
	t.Helper()
	fields, phrases = map[string]string{}, map[string]string{}
	for _, dir := range []string{"container", "middleware", "lifecycle", "config", "admin", "telemetry", "transport", "internal/logs"} {
		err := filepath.WalkDir("../"+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/soak/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				ast.Inspect(file, func(n ast.Node) bool { return logNode(n, path, fields, phrases) })
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return fields, phrases
}

func logNode(n ast.Node, path string, fields, phrases map[string]string) bool {
	switch x := n.(type) {
	case *ast.CompositeLit: // the container's table
		if len(x.Elts) == 3 {
			if level, ok := x.Elts[1].(*ast.SelectorExpr); ok && strings.HasSuffix(level.Sel.Name, "Level") {
				phrases[text(x.Elts[0])] = strings.ToLower(strings.TrimSuffix(level.Sel.Name, "Level"))
			}
		}
	case *ast.CallExpr:
		call, ok := x.Fun.(*ast.SelectorExpr)
		if !ok || len(x.Args) == 0 {
			return true
		}
		if p, ok := call.X.(*ast.Ident); ok && p.Name == "zap" {
			if name := text(x.Args[0]); name != "" {
				fields[name] = path
			}
			return true
		}
		if slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, call.Sel.Name) && text(x.Args[0]) != "" {
			phrases[text(x.Args[0])] = strings.ToLower(call.Sel.Name)
		}
	}
	return true
}

func text(n ast.Expr) string {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

// Phrases and fields of the log are an interface: what the code can write is on the page,
// and the page knows nothing else.
func TestLogPageIsWhatTheCodeWrites(t *testing.T) {
	lines, explained := logPage(t)
	fields, phrases := logCalls(t)
	if len(fields) < 40 || len(phrases) < 35 {
		t.Fatalf("only %d fields and %d phrases were found in the sources", len(fields), len(phrases))
	}
	for name, path := range fields {
		if !slices.Contains(explained, name) {
			t.Errorf("%s writes the field %q, which reference/logs.md does not explain", path, name)
		}
	}
	for phrase, level := range phrases {
		if l, ok := lines[phrase]; phrase != "container" && (!ok || !slices.Contains(l.levels, level)) {
			t.Errorf("the line %q at %s is not in reference/logs.md", phrase, level)
		}
	}
	for phrase, l := range lines {
		if _, ok := phrases[phrase]; !ok && !strings.HasPrefix(phrase, "container ") && phrase != "handled" && !slices.Contains([]string{"lease lost", "cannot subscribe", "consumer reconnected"}, phrase) {
			t.Errorf("reference/logs.md has the line %q, which nothing writes", phrase)
		}
		for _, f := range l.fields {
			if !slices.Contains(explained, f) {
				t.Errorf("the field %q of the line %q is not explained", f, phrase)
			}
		}
	}
	if got := slices.Clone(explained); len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(explained) {
		t.Error("a field is explained twice")
	}
}
