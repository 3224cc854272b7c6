package sqstest

import (
	"maps"
	"time"
)

// QueueState is what a queue holds.
type QueueState struct {
	Visible, Hidden, Delayed int
}

// CreateQueue makes a queue, as the action of that name does, and returns its
// URL. The name of a FIFO queue ends with .fifo; its attribute FifoQueue is set
// here.
func (s *Server) CreateQueue(tb TB, name string, attributes map[string]string) (queueURL string) {
	tb.Helper()
	attrs := maps.Clone(attributes)
	if attrs == nil {
		attrs = map[string]string{}
	}
	if len(name) > 5 && name[len(name)-5:] == ".fifo" {
		attrs["FifoQueue"] = "true"
	}
	s.mu.Lock()
	err := s.create(name, attrs, nil)
	s.mu.Unlock()
	if err != nil {
		tb.Fatalf("sqstest: queue %q: %v", name, err)
	}
	return s.URL + "/" + s.cfg.AccountID + "/" + name
}

// ARN returns the ARN of a queue of that name.
func (s *Server) ARN(queue string) string { return s.arnOf(queue) }

// Queue returns what a queue holds now; false if there is none.
func (s *Server) Queue(name string) (QueueState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return QueueState{}, false
	}
	q.refresh(s.clock())
	return QueueState{Visible: q.count[visible], Hidden: q.count[inFlight], Delayed: q.count[delayed]}, true
}

// Stored is a message in a queue.
type Stored struct {
	MessageID, Body, Group, DedupID string
	// Strings and Binaries are the message attributes by name; Types holds the
	// type of each.
	Strings  map[string]string
	Binaries map[string][]byte
	Types    map[string]string
	Receives int
	Sent     time.Time
	Hidden   bool      // in flight or delayed, until Due
	Due      time.Time // of the server's clock
}

// Messages returns what a queue holds, oldest first, without touching it.
func (s *Server) Messages(queue string) []Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queue]
	if q == nil {
		return nil
	}
	q.refresh(s.clock())
	out := make([]Stored, 0, len(q.messages))
	for _, m := range q.inOrder() {
		st := Stored{MessageID: m.id, Body: m.body, Group: m.group, DedupID: m.dedup, Receives: m.receives, Sent: m.sent,
			Hidden: m.state != visible, Due: m.due, Strings: map[string]string{}, Binaries: map[string][]byte{}, Types: map[string]string{}}
		for name, a := range m.attrs {
			st.Types[name] = a.DataType
			if a.StringValue != nil {
				st.Strings[name] = *a.StringValue
			} else {
				st.Binaries[name] = a.BinaryValue
			}
		}
		out = append(out, st)
	}
	return out
}

// Expire makes everything that is in flight in a queue visible at once, as if
// all timeouts had ended.
func (s *Server) Expire(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queue]
	if q == nil {
		return
	}
	now := s.clock()
	for _, m := range q.inOrder() {
		if m.state == inFlight {
			q.become(m, visible, now)
		}
	}
	q.wake()
}
