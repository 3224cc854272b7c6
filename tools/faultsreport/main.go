package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/tools/faultindex"
)

type options struct {
	run     string
	in      string
	list    bool
	page    bool
	race    bool
	short   bool
	timeout time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "requirements, by the beginning of their id, separated by commas; empty = all")
	flag.StringVar(&o.in, "in", "", "only the tests in these folders and below, such as ./transport,./container; the rest keeps its last result")
	flag.BoolVar(&o.list, "list", false, "only show which tests belong to which requirement")
	flag.BoolVar(&o.page, "page", false, "write docs/faults.md also when not all were run, from the last results")
	flag.BoolVar(&o.race, "race", true, "run with the race detector")
	flag.BoolVar(&o.short, "short", false, "pass -short to the tests")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Minute, "for the tests of one package")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "faults: %q is not a flag; several requirements go into one -run, with commas\n", flag.Args())
		os.Exit(2)
	}
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
	for _, pkg := range byPackage(index, selected) {
		if !below(pkg.folder, o.in) {
			continue
		}
		results, err := runPackage(root, pkg.folder, pkg.tests, o)
		if err != nil {
			return err
		}
		store.add(pkg.folder, revision, results)
		if err := store.save(); err != nil { // what was measured is kept when the next one hangs
			return err
		}
	}
	store.ranOn(brokers(), o.run == "" && o.in == "")
	if err := store.save(); err != nil {
		return err
	}
	if o.run == "" && o.in == "" || o.page {
		if err := writePage(root, index, store); err != nil {
			return err
		}
	}
	return verdict(index, store, selected)
}

// below says whether a folder is one of those listed, or in one of them; "" lists all.
func below(folder, listed string) bool {
	return listed == "" || slices.ContainsFunc(strings.Split(listed, ","), func(in string) bool {
		return folder == in || strings.HasPrefix(folder, strings.TrimSuffix(in, "/")+"/")
	})
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
	by := map[string][]string{}
	for _, r := range selected {
		state := s.state(index.Tests(r.ID), r)
		by[state] = append(by[state], r.ID)
		fmt.Printf("%-14s %s %s\n", state, r.ID, r.Title)
		for _, t := range index.Tests(r.ID) {
			switch x := s.of(t); {
			case x.Result == failed:
				fmt.Printf("               failed: %s %s:%d\n", t.Name, t.File, t.Line)
			case x.Result != passed && !r.Unbuilt:
				fmt.Printf("               not run: %s %s:%d\n", t.Name, t.File, t.Line)
			}
		}
	}
	fmt.Println()
	for _, state := range states() {
		if len(by[state]) > 0 {
			fmt.Printf("%3d %s\n", len(by[state]), state)
		}
	}
	var errs []error
	for _, bad := range []struct{ state, text string }{
		{stateFailed, "do not hold"}, {stateAbsent, "have no test"}, {stateNotRun, "are unproven: no test of theirs ran (a broker that they need is not there, or -short)"},
	} {
		if ids := by[bad.state]; len(ids) > 0 {
			errs = append(errs, fmt.Errorf("%d requirements %s: %s", len(ids), bad.text, strings.Join(ids, " ")))
		}
	}
	for _, stray := range index.Stray {
		errs = append(errs, errors.New(stray))
	}
	return errors.Join(errs...)
}

type packageTests struct {
	folder string
	tests  []string
}

// byPackage are the tests of requirements, by folder.
func byPackage(index *faultindex.Index, selected []faultindex.Requirement) []packageTests {
	var out []packageTests
	for _, r := range selected {
		for _, t := range index.Tests(r.ID) {
			i := slices.IndexFunc(out, func(p packageTests) bool { return p.folder == t.Package })
			if i < 0 {
				i = len(out)
				out = append(out, packageTests{folder: t.Package})
			}
			if !slices.Contains(out[i].tests, t.Name) {
				out[i].tests = append(out[i].tests, t.Name)
			}
		}
	}
	slices.SortFunc(out, func(a, b packageTests) int { return strings.Compare(a.folder, b.folder) })
	return out
}
