package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/faultindex"
)

type options struct {
	run     string
	list    bool
	page    bool
	race    bool
	short   bool
	timeout time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "requirements, by the beginning of their id, separated by commas; empty = all")
	flag.BoolVar(&o.list, "list", false, "only show which tests belong to which requirement")
	flag.BoolVar(&o.page, "page", false, "write docs/faults.md also when not all were run, from the last results")
	flag.BoolVar(&o.race, "race", true, "run with the race detector")
	flag.BoolVar(&o.short, "short", false, "pass -short to the tests")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Minute, "for the tests of one package")
	flag.Parse()
	if err := report(".", o); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func report(root string, o options) error {
	index, err := faultindex.Read(root)
	if err != nil {
		return err
	}
	selected, err := index.Select(o.run)
	if err != nil {
		return err
	}
	if o.list {
		list(index, selected)
		return nil
	}
	store, err := openStore(root)
	if err != nil {
		return err
	}
	revision := revisionOf(root)
	for _, pkg := range inOrder(index.ByPackage(selected)) {
		results, err := runPackage(root, pkg.folder, pkg.pattern, o)
		if err != nil {
			return err
		}
		store.add(pkg.folder, revision, results)
		if err := store.save(); err != nil { // what was measured is kept when the next one hangs
			return err
		}
	}
	maps.Copy(store.Brokers, brokers()) // those of the run before, where one is away now
	if err := store.save(); err != nil {
		return err
	}
	if o.run == "" || o.page {
		if err := writePage(root, index, store); err != nil {
			return err
		}
	}
	return verdict(index, store, selected)
}

func list(index *faultindex.Index, selected []faultindex.Requirement) {
	for _, r := range selected {
		fmt.Printf("%s  %s\n", r.ID, r.Title)
		for _, t := range index.Tests(r.ID) {
			fmt.Printf("       %s %s:%d\n", t.Name, t.File, t.Line)
		}
		if len(index.Tests(r.ID)) == 0 {
			fmt.Printf("       %s\n", absent(r))
		}
	}
	for _, s := range index.Stray {
		fmt.Println("STRAY ", s)
	}
}

func absent(r faultindex.Requirement) string {
	if r.Unbuilt {
		return "not built"
	}
	return "NO TEST"
}

// verdict prints a line for each requirement and fails if one of them does not hold,
// or cannot be told to.
func verdict(index *faultindex.Index, s *store, selected []faultindex.Requirement) error {
	var bad []string
	for _, r := range selected {
		state := s.state(index.Tests(r.ID), r)
		fmt.Printf("%-14s %s %s\n", state, r.ID, r.Title)
		if state == stateFailed || state == stateAbsent {
			bad = append(bad, r.ID)
			for _, t := range index.Tests(r.ID) {
				if s.of(t).Result == failed {
					fmt.Printf("               failed: %s %s:%d\n", t.Name, t.File, t.Line)
				}
			}
		}
	}
	var errs []error
	if len(bad) > 0 {
		errs = append(errs, fmt.Errorf("%d requirements do not hold: %s", len(bad), strings.Join(bad, " ")))
	}
	for _, stray := range index.Stray {
		errs = append(errs, errors.New(stray))
	}
	return errors.Join(errs...)
}

type packageTests struct{ folder, pattern string }

func inOrder(byPackage map[string]string) []packageTests {
	var out []packageTests
	for folder, pattern := range byPackage {
		out = append(out, packageTests{folder, pattern})
	}
	slices.SortFunc(out, func(a, b packageTests) int { return strings.Compare(a.folder, b.folder) })
	return out
}
