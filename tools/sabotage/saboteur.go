package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/tools/faultindex"
)

type saboteur struct {
	tree   string
	within string // how long the tests of a package may take
	state  string // of the brokers that tests start: it outlives the tree
	index  *faultindex.Index
}

// try puts the fault in, runs the fault tests of its packages until one is red, and
// takes it out again.
func (s *saboteur) try(ctx context.Context, e edit) (caught string, err error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	undo, err := e.Put(s.tree)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, undo()) }()
	patterns := s.index.ByPackage(s.index.Requirements)
	for _, folder := range e.packages {
		if out, err := s.test(ctx, folder, "^$", ""); err != nil {
			return "", fmt.Errorf("the broken code does not compile: %s", out)
		}
		red, err := s.red(ctx, folder, patterns[folder])
		if err != nil {
			return "", err
		}
		if len(red) == 0 {
			continue
		}
		if err := undo(); err != nil {
			return "", err
		}
		without := s.failing(ctx, folder, red)
		proven := slices.DeleteFunc(red, func(name string) bool { return slices.Contains(without, name) })
		if len(proven) == 0 {
			return "", fmt.Errorf("%v fails without the fault too", without)
		}
		return s.name(folder, proven), nil
	}
	return "", nil
}

// red runs tests until one fails. What is red may be so for want of time: it counts if
// it is red alone, too, and if not the others go on without it.
func (s *saboteur) red(ctx context.Context, folder, pattern string) ([]string, error) {
	var slow []string
	for range 3 {
		failed := failures(s.test(ctx, folder, pattern, faultindex.Pattern(slow)))
		if red := s.failing(ctx, folder, failed); len(red) > 0 || len(failed) == 0 {
			return red, nil
		}
		slow = append(slow, failed...)
	}
	return nil, fmt.Errorf("the machine is too busy for the tests of %s: %v failed, and alone they pass; -timeout gives them more time", folder, slow)
}

// failing runs each test alone and returns those that fail.
func (s *saboteur) failing(ctx context.Context, folder string, names []string) (red []string) {
	for _, name := range names {
		if _, err := s.test(ctx, folder, faultindex.Pattern([]string{name}), ""); err != nil {
			red = append(red, name)
		}
	}
	return red
}

func (s *saboteur) test(ctx context.Context, folder, pattern, without string) (string, error) {
	args := []string{"test", "-count=1", "-failfast", "-timeout", s.within, "-run", pattern}
	if without != "" {
		args = append(args, "-skip", without)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, folder)...) //nolint:gosec // our own tests
	cmd.Dir, cmd.Env = s.tree, append(os.Environ(), "LONGSHORE_STATE="+s.state)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// failures reads the names of top-level tests that failed, or that ran when the
// package's time was over or it panicked.
func failures(out string, err error) []string {
	if err == nil {
		return nil
	}
	var names []string
	lines := bufio.NewScanner(strings.NewReader(out))
	failed := regexp.MustCompile(`^(?:--- FAIL: |\s+)(Test\w+|Fuzz\w+)(?:/\S*)? \(`)
	panicked := regexp.MustCompile(`^panic: .*|^\S+_test\.(Test\w+)\(`)
	for lines.Scan() {
		for _, form := range []*regexp.Regexp{failed, panicked} {
			if m := form.FindStringSubmatch(lines.Text()); m != nil && m[1] != "" && m[1] != "TestMain" && !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

// name says which requirements the tests stand for.
func (s *saboteur) name(folder string, tests []string) string {
	var ids []string
	for _, r := range s.index.Requirements {
		for _, t := range s.index.Tests(r.ID) {
			if t.Package == folder && slices.Contains(tests, t.Name) && !slices.Contains(ids, r.ID) {
				ids = append(ids, r.ID)
			}
		}
	}
	return fmt.Sprintf("%s by %s in %s", strings.Join(ids, " "), strings.Join(tests, " "), folder)
}
