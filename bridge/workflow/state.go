package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/longshore-go/longshore"
)

// stateVersion is the newest form of the file that this release reads.
const stateVersion = 1

// State is what a move remembers between two commands.
type State struct {
	Version  int       `json:"version"`
	Serial   int64     `json:"serial"` // goes up with each save, so that two writers notice each other
	Route    string    `json:"route"`
	Phase    string    `json:"phase"`
	Topology string    `json:"topology,omitempty"` // both ends as they were when the move began
	Moved    int64     `json:"moved,omitempty"`    // dead letters moved, for the report
	History  []Passage `json:"history,omitempty"`
}

// Passage is a phase that was reached.
type Passage struct {
	Phase string    `json:"phase"`
	At    time.Time `json:"at"`
	Host  string    `json:"host,omitempty"`
}

// fileOf is where a route's state is.
func fileOf(ledger, route string) string {
	return filepath.Join(ledger, filepath.Base(route), "state.json")
}

// Load reads the state of a route below the ledger's directory. A route without a file is
// [Planned]. The error is [longshore.CodeState] for a file of a newer release or another route.
func Load(ledger, route string) (State, error) {
	fresh := State{Version: stateVersion, Route: route, Phase: Planned.String()}
	path := fileOf(ledger, route)
	text, err := os.ReadFile(path) //nolint:gosec // the operator's own file
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return fresh, &longshore.Error{Code: longshore.CodeConfig, Op: "read the state of route " + route, Err: err, Hint: "the directory of the ledger must be readable"}
	}
	var s State
	if err := json.Unmarshal(text, &s); err != nil {
		return fresh, refused(route, fmt.Errorf("%s is damaged: %w", path, err), "restore it from a copy; the brokers were not touched")
	}
	if s.Version > stateVersion {
		return fresh, refused(route, fmt.Errorf("%s has version %d and was written by a newer release", path, s.Version), "use that release; this one knows version 1")
	}
	if _, known := ParsePhase(s.Phase); !known || s.Route != route {
		return fresh, refused(route, fmt.Errorf("%s has phase %q of route %q", path, s.Phase, s.Route), "name the directory of this route's ledger")
	}
	return s, nil
}

func refused(route string, err error, hint string) error {
	return &longshore.Error{Code: longshore.CodeState, Op: "continue the move of route " + route, Source: route, Err: err, Hint: hint}
}

// phase is the phase as a value; Load has checked it.
func (s *State) phase() Phase {
	p, _ := ParsePhase(s.Phase)
	return p
}

// At is the phase that the state is in.
func (s *State) At() Phase { return s.phase() }

// save writes the state and replaces the file in one step. It refuses to write over a state
// that another command has saved meanwhile.
func (s *State) save(ledger string) error {
	now, err := Load(ledger, s.Route)
	if err != nil {
		return err
	}
	if now.Serial != s.Serial {
		return refused(s.Route, fmt.Errorf("another command has brought the move to phase %s meanwhile", now.Phase), "let that command finish, then run this one again")
	}
	next := *s
	next.Serial++
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	path := fileOf(ledger, s.Route)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return cannotSave(s.Route, err)
	}
	if err := replace(path, append(text, '\n')); err != nil {
		return cannotSave(s.Route, err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return cannotSave(s.Route, err)
	}
	*s = next
	return nil
}

func cannotSave(route string, err error) error {
	return &longshore.Error{Code: longshore.CodeConfig, Op: "save the state of route " + route, Err: err, Hint: "the directory of the ledger must be writable and have room; nothing was begun that the state does not say"}
}

// replace writes a file so that a crash leaves the old one or the new one.
func replace(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".state-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// syncDir makes the names in a directory outlive a loss of power. Windows has no such call.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path) //nolint:gosec // the operator's own directory
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// reach moves the state on and saves it.
func (s *State) reach(ledger string, p Phase, now time.Time) error {
	host, _ := os.Hostname() // only to be read by people
	next := *s
	next.Phase = p.String()
	next.History = append(next.History[:len(next.History):len(next.History)], Passage{Phase: next.Phase, At: now.UTC(), Host: host})
	if err := next.save(ledger); err != nil {
		return err
	}
	*s = next
	return nil
}
