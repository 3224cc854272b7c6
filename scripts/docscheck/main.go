package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./scripts/docscheck\n\nCompiles the Go code of README.md, CONTRIBUTING.md and docs/, and counts their words.\nRun it at the top of the module. See go doc ./scripts/docscheck.")
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	// A signal ends the compiler, and then the defers below remove the work folder.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, ".")
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks the documents of the module whose top folder is root.
func run(ctx context.Context, root string) error {
	documents, err := documentsIn(root)
	if err != nil {
		return err
	}
	imports, err := importablePackages(ctx, root)
	if err != nil {
		return err
	}
	work, err := workdir(root)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	var problems []error
	count, read := 0, 0
	for _, document := range documents {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			return err
		}
		if counted(document) {
			read += words(string(text))
		}
		blocks, err := extract(document, string(text))
		problems = append(problems, err)
		for _, b := range blocks {
			count++
			problems = append(problems, compile(ctx, work, fmt.Sprintf("b%d", count), b, imports))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	fmt.Printf("docs: %d code blocks of %d documents compile; %d words for users (without code, decisions, faults and benchmarks)\n", count, len(documents), read)
	return nil
}

func documentsIn(root string) ([]string, error) {
	var found []string
	for _, name := range []string{"README.md", "CONTRIBUTING.md"} {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			found = append(found, name)
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		relative, err := filepath.Rel(root, path)
		found = append(found, relative)
		return err
	})
	return found, err
}

// importablePackages maps package names to paths: the module's own, a few that
// documents need of others, and the standard library where the name is still free.
func importablePackages(ctx context.Context, root string) (map[string]string, error) {
	imports := map[string]string{
		"zap":     "go.uber.org/zap",
		"fx":      "go.uber.org/fx",
		"amqp091": "github.com/rabbitmq/amqp091-go",
		"kgo":     "github.com/twmb/franz-go/pkg/kgo",
	}
	for _, pattern := range []string{"./...", "std"} {
		cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.Name}} {{.ImportPath}}", pattern)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w", pattern, err)
		}
		for line := range strings.Lines(string(out)) {
			name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
			if _, taken := imports[name]; !taken && importable(path) {
				imports[name] = path
			}
		}
	}
	return imports, nil
}

func importable(path string) bool {
	for element := range strings.SplitSeq(path, "/") {
		if element == "internal" || element == "vendor" || element == "zz_realbrokers" || element == "examples" {
			return false
		}
	}
	return true
}

// compile builds the block in a folder of its own and returns what the compiler says.
func compile(ctx context.Context, work, name string, b block, imports map[string]string) error {
	source, err := b.source(imports)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", b.file, b.line, err)
	}
	dir := filepath.Join(work, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "block.go"), []byte(source), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-gcflags=-e", "-o", os.DevNull, ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	return complaints(b, string(out))
}

// complaints keeps the compiler's lines that count. A snippet may leave a variable
// or an import unused: the next snippet uses it.
func complaints(b block, output string) error {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		unused := strings.Contains(line, "declared and not used") || strings.Contains(line, "imported and not used")
		if line == "" || strings.HasPrefix(line, "#") || b.snippet && unused {
			continue
		}
		// The compiler makes the //line name relative to its own folder.
		if at := strings.Index(line, b.file+":"); at > 0 {
			line = line[at:]
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}
