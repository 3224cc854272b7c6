package sqstest

import (
	"errors"
	"slices"
	"time"
)

// Call is one call as the server carried it out.
type Call struct {
	At     time.Time // of the server's clock, when it was carried out
	Action string
	Queue  string
	// Entries of a batch; one of a single call; the messages of an answer to a
	// receive.
	Entries []Entry
	// Max, Wait and Visibility of a receive, in seconds; Visibility is -1 where
	// the queue's was used.
	Max, Wait, Visibility int
	// Code of a refused call; "cut" if there was no answer; "" if it was answered,
	// also while it still waits.
	Code string
	// Done: the call has an outcome.
	Done bool
}

// Entry is one message in a call.
type Entry struct {
	Index      int    // in the batch or answer
	ID         string // of the entry
	MessageID  string
	Receipt    string
	Body       string // of a send or receive
	Group      string
	DedupID    string
	Visibility int    // new timeout in seconds, of a visibility call
	Delay      int    // of a send
	Receives   int    // count, of a receive
	Code       string // why the entry failed
}

// callLog remembers the last calls.
type callLog struct {
	limit  int
	first  int // number of calls that were dropped
	calls  []*Call
	counts map[string]int
}

// begin puts a call into the log. The caller holds mu.
func (s *Server) begin(c *call) {
	c.At = s.clock()
	s.log.counts[c.Action]++
	c.id = -1
	if s.log.limit < 0 {
		return
	}
	if len(s.log.calls) >= s.log.limit {
		cut := max(1, s.log.limit/2)
		s.log.calls = append([]*Call(nil), s.log.calls[min(cut, len(s.log.calls)):]...)
		s.log.first += cut
	}
	c.id = s.log.first + len(s.log.calls)
	logged := c.Call
	s.log.calls = append(s.log.calls, &logged)
}

// note updates the log. The caller holds mu.
func (s *Server) note(c *call) {
	if i := c.id - s.log.first; c.id >= 0 && i >= 0 && i < len(s.log.calls) {
		*s.log.calls[i] = c.Call
	}
}

// finish notes the outcome of a call.
func (s *Server) finish(c *call, err error) {
	var refused *apiError
	switch {
	case errors.As(err, &refused):
		c.Code = refused.shape
	case err != nil:
		c.Code = "cut"
	}
	c.Done = true
	if c.id < 0 { // not in the log
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(c)
}

// Calls returns the calls so far, oldest first: all, or those of the actions
// given.
func (s *Server) Calls(actions ...string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Call, 0, len(s.log.calls))
	for _, c := range s.log.calls {
		if len(actions) == 0 || slices.Contains(actions, c.Action) {
			cp := *c
			cp.Entries = slices.Clone(c.Entries)
			out = append(out, cp)
		}
	}
	return out
}

// Count returns how many calls there were: of all actions, or of those given.
func (s *Server) Count(actions ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for name, k := range s.log.counts {
		if len(actions) == 0 || slices.Contains(actions, name) {
			n += k
		}
	}
	return n
}

// ForgetCalls empties the log and the counts.
func (s *Server) ForgetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.first += len(s.log.calls)
	s.log.calls, s.log.counts = nil, map[string]int{}
}
