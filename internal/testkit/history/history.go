package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Kind is what happened.
type Kind string

// What a history contains. Runs are single calls of a handler; their numbers are unique
// within a process.
const (
	Published   Kind = "published"   // a message is about to be sent: ID, Key, Seq
	Confirmed   Kind = "confirmed"   // the broker has taken it: ID
	Unconfirmed Kind = "unconfirmed" // nobody knows whether the broker has it: ID
	Started     Kind = "started"     // a handler begins: ID, Key, Seq, Run
	Canceled    Kind = "canceled"    // its context ended: Run
	Done        Kind = "done"        // it returned nil: ID, Run
	Failed      Kind = "failed"      // it returned an error: ID, Run
	Effects     Kind = "effects"     // how often a message had its effect, read at the end: ID, N
	Dead        Kind = "dead"        // found at the dead-letter destination at the end: ID
	Left        Kind = "left"        // found in the source at the end: ID
	Joined      Kind = "joined"      // a consuming process is ready
	Killed      Kind = "killed"      // Of was killed
	Frozen      Kind = "frozen"      // Of was stopped by SIGSTOP
	Thawed      Kind = "thawed"      // Of goes on
	Draining    Kind = "draining"    // a stop begins, and has to end within N milliseconds
	Drained     Kind = "drained"     // it has ended
	Fault       Kind = "fault"       // Text says what is broken from now on; N is 1 if a majority of the brokers still answers
	Healed      Kind = "healed"      // all faults are over
)

// Event is one line.
type Event struct {
	At      int64  `json:"at"` // nanoseconds of the machine's clock, which all processes share
	Process string `json:"p"`  // who writes
	Kind    Kind   `json:"e"`
	ID      string `json:"id,omitempty"`
	Key     string `json:"key,omitempty"`
	Seq     int64  `json:"seq,omitempty"` // place of the message among those of its key, from 1
	Run     int64  `json:"run,omitempty"`
	N       int64  `json:"n,omitempty"`
	Of      string `json:"of,omitempty"` // another process
	Text    string `json:"text,omitempty"`
}

// Writer appends to the history of one process. Its methods may be called by several
// goroutines.
type Writer struct {
	process string
	mu      sync.Mutex
	file    *os.File
	failed  error // of the first write that failed
}

// Create begins the history of a process in a folder.
func Create(folder, process string) (*Writer, error) {
	file, err := os.OpenFile(filepath.Join(folder, process+".jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{process: process, file: file}, nil
}

// Add writes an event; At and Process are set here.
func (w *Writer) Add(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.At, e.Process = time.Now().UnixNano(), w.process
	line, err := json.Marshal(e)
	if err == nil {
		_, err = w.file.Write(append(line, '\n')) // one call: a killed process leaves whole lines
	}
	if w.failed == nil {
		w.failed = err
	}
}

// Close ends the history, and returns the first error of writing it.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.failed, w.file.Close())
}

// Read returns the events of all processes in a folder, in the order of time.
func Read(folder string) ([]Event, error) {
	files, err := fs.Glob(os.DirFS(folder), "*.jsonl")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no history (*.jsonl) in %s", folder)
	}
	var all []Event
	for _, name := range files {
		part, err := readFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return int(min(max(a.At-b.At, -1), 1)) })
	return all, nil
}

func readFile(name string) (all []Event, err error) {
	file, err := os.Open(name) //nolint:gosec // the caller names the folder
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // the rest is being written
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		all = append(all, e)
	}
}
