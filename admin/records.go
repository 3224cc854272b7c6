package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// Record is a delivery that a container holds.
type Record struct {
	// Record is the name by which the changing calls know it.
	Record     string              `json:"record"`
	State      container.HeldState `json:"state"`
	Key        string              `json:"key,omitempty"`
	Attempt    int                 `json:"attempt"`
	Of         int                 `json:"of"`
	Topic      string              `json:"topic,omitempty"`
	Partition  int32               `json:"partition"`
	Position   uint64              `json:"position"`
	ReceivedAt time.Time           `json:"received_at,omitzero"`
	// Age is that of the handler's call in seconds, of what no handler has the time
	// since it was received.
	Age float64 `json:"age"`
	// Due is when what is parked is tried again.
	Due time.Time `json:"due,omitzero"`
	// At is where in the code a call is that runs for long; for operators.
	At string `json:"at,omitempty"`
	// Stack is that of the handler's goroutine; of stuck ones only.
	Stack string `json:"stack,omitempty"`
}

func recordOf(h container.Held) Record {
	return Record{Record: h.Record, State: h.State, Key: h.Key, Attempt: h.Attempt, Of: h.Of, Topic: h.Topic, Partition: h.Partition,
		Position: h.Position, ReceivedAt: h.ReceivedAt, Age: h.Age.Seconds(), Due: h.Due, Stack: h.Stack}
}

func recordsOf(held []container.Held) []Record {
	rs := make([]Record, 0, len(held))
	for _, h := range held {
		rs = append(rs, recordOf(h))
	}
	return rs
}

// The most records of one answer, and how many unless asked for.
const (
	mostRecords = 1000
	fewRecords  = 100
)

func (cs *containers) inflight(w http.ResponseWriter, r *http.Request) {
	c := cs.find(w, r)
	if c == nil {
		return
	}
	n, ok := numberOf(w, r, "limit", fewRecords, mostRecords)
	if !ok {
		return
	}
	held, total := c.InFlight(n)
	answer(w, http.StatusOK, map[string]any{"total": total, "records": recordsOf(held)})
}

func (cs *containers) stuck(w http.ResponseWriter, r *http.Request) {
	if c := cs.find(w, r); c != nil {
		held := c.Stuck()
		answer(w, http.StatusOK, map[string]any{"total": len(held), "records": recordsOf(held)})
	}
}

func (cs *containers) why(w http.ResponseWriter, r *http.Request) {
	if c := cs.find(w, r); c != nil {
		answer(w, http.StatusOK, shownTo(r.Context(), c.Bottleneck()))
	}
}

// oneRecord is the body of what is done with one record.
type oneRecord struct {
	Record    string `json:"record"`
	Reason    string `json:"reason"`
	Interrupt bool   `json:"interrupt"`
}

// intervene returns the handler of a change to one record.
func (s *steering) intervene(verb, done string, do func(*container.ListenerContainer, container.Intervention) (container.Held, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.changeRecord(w, r, verb, done, do) }
}

func (s *steering) changeRecord(w http.ResponseWriter, r *http.Request, verb, done string, do func(*container.ListenerContainer, container.Intervention) (container.Held, error)) {
	var b oneRecord
	c := s.containers.find(w, r)
	if c == nil || !read(w, r, &b) {
		return
	}
	if b.Record == "" {
		fail(w, http.StatusBadRequest, longshore.CodeConfig, "no record is named", "see GET /api/containers/"+c.Name()+"/inflight")
		return
	}
	h, err := do(c.ListenerContainer, container.Intervention{Record: b.Record, Reason: b.Reason, Interrupt: b.Interrupt})
	if err != nil {
		refuse(w, err)
		return
	}
	if h.State == container.HeldRunning || h.State == container.HeldStuck {
		done += " when its handler returns"
	}
	s.journal.note(r, c.ListenerContainer, deed{verb: verb, text: done + ": " + clip(h.Record), reason: b.Reason, from: string(h.State), facts: recordFacts(h)})
	answer(w, http.StatusOK, map[string]any{"done": done, "record": recordOf(h), "container": s.containers.status(c)})
}

// seeking is the body of a seek.
type seeking struct {
	Topic     string    `json:"topic"`
	Partition *int32    `json:"partition"`
	Offset    *int64    `json:"offset"`
	Start     bool      `json:"start"`
	End       bool      `json:"end"`
	Time      time.Time `json:"time"`
	Reason    string    `json:"reason"`
}

func (b *seeking) position() (transport.Position, error) {
	p := transport.Position{Topic: b.Topic, Partition: -1, Start: b.Start, End: b.End, Time: b.Time}
	said := 0
	for _, given := range []bool{b.Offset != nil, b.Start, b.End, !b.Time.IsZero()} {
		if given {
			said++
		}
	}
	if b.Partition != nil {
		p.Partition = *b.Partition
	}
	if b.Offset != nil {
		p.Offset = *b.Offset
	}
	var text string
	switch {
	case said != 1:
		text = "give one of offset, start, end and time"
	case b.Partition != nil && *b.Partition < 0, b.Offset != nil && *b.Offset < 0:
		text = "partition and offset must not be negative"
	case b.Offset != nil && b.Partition == nil:
		text = "an offset is a number in one partition: name it"
	default:
		return p, nil
	}
	return p, &longshore.Error{Code: longshore.CodeConfig, Op: "seek", Err: errors.New(text), Hint: "see GET /api/openapi.json"}
}

// seek answers when reading goes on. It goes on when the client does not wait: half
// of it would be worse.
func (s *steering) seek(w http.ResponseWriter, r *http.Request) {
	var b seeking
	c := s.containers.find(w, r)
	if c == nil || !read(w, r, &b) {
		return
	}
	to, err := b.position()
	if err != nil {
		refuse(w, err)
		return
	}
	moved, err := c.Seek(context.WithoutCancel(r.Context()), to)
	if err != nil {
		refuse(w, err)
		return
	}
	list := []map[string]any{}
	for _, m := range moved {
		s.journal.note(r, c.ListenerContainer, deed{verb: "seek", text: fmt.Sprintf("position of %s/%d moved from %d to %d", m.Topic, m.Partition, m.From, m.To), reason: b.Reason,
			from: strconv.FormatInt(m.From, 10), to: strconv.FormatInt(m.To, 10), facts: []zap.Field{zap.String("topic", m.Topic), zap.Int32("partition", m.Partition)}})
		list = append(list, map[string]any{"topic": m.Topic, "partition": m.Partition, "from": m.From, "to": m.To})
	}
	answer(w, http.StatusOK, map[string]any{"moved": list, "container": s.containers.status(c)})
}
