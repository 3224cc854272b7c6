package oracle

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// Ledger notes what happened to numbered messages. Safe for concurrent use.
type Ledger struct {
	mu        sync.Mutex
	published map[string]string // id → key
	order     map[string][]string
	runs      map[string][]*run // by id
	perKey    map[string][]*run // in the order in which handlers began
	dead      map[string]int
	open      map[string]int // by key: handlers that run now
	clock     int
	file      *os.File // nil: in memory
	err       error    // of the first failed write
	last      time.Time
}

// run is one call of a handler.
type run struct {
	id, key    string
	begin, end int // positions in the ledger's sequence; end 0 = never ended
	ok         bool
	overlapped bool
}

// New returns a ledger in memory.
func New() *Ledger {
	return &Ledger{published: map[string]string{}, order: map[string][]string{}, runs: map[string][]*run{},
		perKey: map[string][]*run{}, dead: map[string]int{}, open: map[string]int{}}
}

// Published notes a message that its broker has confirmed. Call it in the order
// in which the messages of one key were confirmed.
func (l *Ledger) Published(id, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published[id] = key
	l.order[key] = append(l.order[key], id)
	l.write("published", id, key)
}

// Begin notes that a handler was called; the result notes how it ended: ok when
// its effect took place.
func (l *Ledger) Begin(id, key string) (end func(ok bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.begin(id, key)
	l.write("begin", id, key)
	return func(ok bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.end(r, ok)
		l.write(endWord(ok), id, key)
	}
}

func endWord(ok bool) string {
	if ok {
		return "done"
	}
	return "failed"
}

func (l *Ledger) begin(id, key string) *run {
	l.last = time.Now()
	l.clock++
	r := &run{id: id, key: key, begin: l.clock}
	if key != "" {
		r.overlapped = l.open[key] > 0
		l.open[key]++
		l.perKey[key] = append(l.perKey[key], r)
	}
	l.runs[id] = append(l.runs[id], r)
	return r
}

func (l *Ledger) end(r *run, ok bool) {
	l.last = time.Now()
	l.clock++
	r.end, r.ok = l.clock, ok
	if r.key != "" {
		l.open[r.key]--
	}
}

// Dead notes a message that was found in the dead-letter destination.
func (l *Ledger) Dead(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead[id]++
	l.write("dead", id, "")
}

// Quiet says how long no handler has begun or ended.
func (l *Ledger) Quiet() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		return 0
	}
	return time.Since(l.last)
}

// Done returns the number of different messages whose handler has succeeded.
func (l *Ledger) Done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, rs := range l.runs {
		for _, r := range rs {
			if r.ok {
				n++
				break
			}
		}
	}
	return n
}

func (l *Ledger) write(what, id, key string) {
	if l.file == nil {
		return
	}
	// One write call per line: a killed process leaves whole lines.
	if _, err := fmt.Fprintf(l.file, "%s\t%s\t%s\t%d\n", what, id, key, os.Getpid()); err != nil {
		l.err = err // shown by Report: a test without its whole ledger proves nothing
	}
}
