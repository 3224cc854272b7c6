package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/tools/faultindex"
)

// record is the last outcome of a test, and when it was.
type record struct {
	outcome
	At       time.Time
	Revision string
}

// store keeps the last outcome of each test, so that requirements can be run one by
// one and the page still shows all.
type store struct {
	Tests   map[string]record // by folder and name
	Brokers map[string]string

	path string
}

func openStore(root string) (*store, error) {
	s := &store{Tests: map[string]record{}, Brokers: map[string]string{}, path: filepath.Join(root, ".cache", "faults", "results.json")}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(text, s)
}

func (s *store) save() error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.path, text, 0o600)
}

func (s *store) add(folder, revision string, results map[string]outcome) {
	for name, r := range results {
		s.Tests[folder+"."+name] = record{outcome: r, At: time.Now().UTC().Truncate(time.Second), Revision: revision}
	}
}

// ranOn notes the versions of the brokers of a run. The run of a part adds its own to those
// of the rest; a broker that is away now was there before.
func (s *store) ranOn(brokers map[string]string, whole bool) {
	for name, version := range brokers {
		before := s.Brokers[name]
		switch {
		case whole || before == "":
			s.Brokers[name] = version
		case !slices.Contains(strings.Split(before, ", "), version):
			s.Brokers[name] = before + ", " + version
		}
	}
}

func (s *store) of(t faultindex.Test) record { return s.Tests[t.Package+"."+t.Name] }

const (
	stateHolds   = "holds"
	statePartly  = "holds, partly" // some of its tests, or parts of them, had no broker
	stateFailed  = "FAILED"
	stateNotRun  = "not run"
	stateAbsent  = "NO TEST"
	stateUnbuilt = "not built"
)

// states are in the order in which they are counted.
func states() []string {
	return []string{stateHolds, statePartly, stateFailed, stateNotRun, stateAbsent, stateUnbuilt}
}

// state sums up the tests of a requirement.
func (s *store) state(tests []faultindex.Test, r faultindex.Requirement) string {
	if len(tests) == 0 {
		if r.Unbuilt {
			return stateUnbuilt
		}
		return stateAbsent
	}
	ran, absent := 0, 0
	for _, t := range tests {
		x := s.of(t)
		switch x.Result {
		case failed:
			return stateFailed
		case passed:
			ran++
		default:
			absent++
		}
		absent += x.Absent
	}
	switch {
	case r.Unbuilt: // a transport keeps its part of it, nothing crosses yet
		return stateUnbuilt
	case ran == 0:
		return stateNotRun
	case absent > 0:
		return statePartly
	}
	return stateHolds
}

// revisionOf is the short name of the commit, with a plus if files differ from it.
func revisionOf(root string) string {
	git := func(args ...string) string {
		out, _ := exec.Command("git", append([]string{"-C", root}, args...)...).Output() //nolint:noctx // a second; no name outside a repository
		return strings.TrimSpace(string(out))
	}
	revision := git("rev-parse", "--short", "HEAD")
	if git("status", "--porcelain", "--untracked-files=no") != "" {
		revision += "+"
	}
	return revision
}
