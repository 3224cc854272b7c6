package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/longshore-go/longshore/tools/textedit"
)

func main() {
	only := flag.String("only", "", "faults with this in their name or commit")
	within := flag.Duration("within", time.Minute, "how long the simulation may search for one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *only, *within)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, within time.Duration) error {
	tree, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	if err := textedit.CopyTree(ctx, ".", tree, false); err != nil {
		return err
	}
	var missed []error
	for _, f := range faults() {
		if !strings.Contains(f.Name+" "+f.from, only) {
			continue
		}
		found, err := try(ctx, tree, f, within)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if found == "" {
			found = "NOT FOUND"
			missed = append(missed, fmt.Errorf("%s (%s) was not found", f.Name, f.from))
		}
		fmt.Printf("%-8s  %-66s  %-30s  %s\n", f.from, f.Name, f.layer, found)
	}
	return errors.Join(missed...)
}

// try puts a fault in, lets the simulation search for it, and takes it out again.
func try(ctx context.Context, tree string, f fault, within time.Duration) (found string, err error) {
	undo, err := f.Put(tree)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, undo()) }()
	binary := filepath.Join(tree, "simulation.test")
	if out, err := test(ctx, tree, "go", "test", "-c", "-o", binary, f.layer); err != nil {
		return "", fmt.Errorf("the edited code does not compile: %s", out)
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^TestSimulation$", "-test.v") //nolint:gosec // our own tests
	cmd.Dir = filepath.Join(tree, filepath.FromSlash(f.layer))
	cmd.Env = append(os.Environ(), "LONGSHORE_SIMULATE="+within.String())
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	// A hole in the coverage is not the fault: only a failing history is.
	m := regexp.MustCompile(`seed \d+: .*\n\s*shortest history, (\d+) of (\d+) steps: (.*)`).FindSubmatch(out)
	searched := regexp.MustCompile(`steps in (\S+),`).FindSubmatch(out)
	switch {
	case err == nil || m == nil && searched != nil:
		return "", nil
	case m == nil: // it ended the process: a deadlock, or a panic outside of the histories
		return fmt.Sprintf("after %v, by the end of the process", time.Since(began).Round(time.Millisecond)), nil
	}
	return fmt.Sprintf("after %s, %s of %s steps: %s", searched[1], m[1], m[2], cut(string(m[3]))), nil
}

func cut(s string) string {
	if len(s) > 90 {
		return s[:90] + " …"
	}
	return s
}

func test(ctx context.Context, tree string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // our own tests
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	return string(out), err
}
