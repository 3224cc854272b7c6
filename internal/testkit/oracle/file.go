package oracle

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// OpenFile returns a ledger that appends to a file. Several processes may write
// to one file: lines are appended whole.
func OpenFile(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	l := New()
	l.file = f
	return l, nil
}

// Close closes the file of a ledger that has one.
func (l *Ledger) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// ReadFile reads the ledger of processes that have ended. A handler whose
// process was killed ([Ledger.Killed]) is one that never ended and runs no more.
func ReadFile(path string) (*Ledger, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	l := New()
	type slot struct{ id, pid string }
	running := map[slot][]*run{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		part := strings.Split(sc.Text(), "\t")
		if len(part) != 4 {
			return nil, fmt.Errorf("oracle: %s: a line of %d fields: %q", path, len(part), sc.Text())
		}
		what, id, key, at := part[0], part[1], part[2], slot{part[1], part[3]}
		switch what {
		case "published":
			l.Published(id, key)
		case "begin":
			running[at] = append(running[at], l.begin(id, key))
		case "done", "failed":
			if rs := running[at]; len(rs) > 0 {
				l.end(rs[0], what == "done")
				running[at] = rs[1:]
			}
		case "dead":
			l.Dead(id)
		case "killed": // written by the test: the process id of a victim is in id
			for s, open := range running {
				if s.pid != id {
					continue
				}
				for _, r := range open {
					l.open[r.key]--
				}
				delete(running, s)
			}
		}
	}
	return l, sc.Err()
}

// Killed notes that a process was ended from outside: its handlers no longer
// run.
func (l *Ledger) Killed(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write("killed", fmt.Sprint(pid), "")
}
