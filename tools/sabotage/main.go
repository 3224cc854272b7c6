package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/longshore-go/longshore/tools/faultindex"
	"github.com/longshore-go/longshore/tools/textedit"
)

func main() {
	only := flag.String("only", "", "faults with this in their name")
	commit := flag.Bool("commit", false, "break the last commit, not the files as they are")
	within := flag.String("timeout", "20m", "for the tests of a package; more where much else runs")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "sabotage: %q is not a flag\n", flag.Args())
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *only, *within, *commit)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sabotage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, within string, commit bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	tree, err := os.MkdirTemp("", "sabotage-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	if err := textedit.CopyTree(ctx, root, tree, commit); err != nil {
		return err
	}
	// The brokers that run, and the locks by which tests share those that they break.
	if err := os.Symlink(filepath.Join(root, ".cache"), filepath.Join(tree, ".cache")); err != nil {
		return err
	}
	index, err := faultindex.Read(tree)
	if err != nil {
		return err
	}
	s := &saboteur{tree: tree, state: filepath.Join(root, ".cache", "brokers"), within: within, index: index}
	var errs []error
	n := 0
	for _, e := range edits() {
		if !strings.Contains(e.Name, only) {
			continue
		}
		n++
		caught, err := s.try(ctx, e)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", e.Name, err))
			fmt.Printf("ERROR       %s: %v\n", e.Name, err)
		case caught == "":
			errs = append(errs, fmt.Errorf("%s in %s was not seen", e.Name, e.File))
			fmt.Printf("NOT CAUGHT  %s (%s)\n", e.Name, e.File)
		default:
			fmt.Printf("caught      %s (%s): %s\n", e.Name, e.File, caught)
		}
	}
	if n == 0 {
		return fmt.Errorf("no fault has %q in its name", only)
	}
	return errors.Join(errs...)
}
