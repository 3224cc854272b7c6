package container_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
)

// handle does with each what its script says.
func (m *laneModel) handle(ctx context.Context, ds []*longshore.Delivery) error {
	steps := m.begin(ds)
	defer m.end(ds)
	long := time.Duration(0)
	for _, s := range steps {
		long = max(long, s.time)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(long):
	}
	failed := longshore.BatchError{}
	for i, s := range steps {
		switch s.kind {
		case "error":
			failed[i] = errors.New("failed")
		case "retry":
			failed[i] = longshore.Retry(errors.New("busy"), s.time)
		case "nack":
			_ = ds[i].Nack(ctx, s.time)
		case "reject":
			failed[i] = longshore.Reject(errors.New("never"))
		case "release":
			failed[i] = longshore.Release(errors.New("not me"), s.time)
		case "panic":
			panic("a handler's panic")
		}
	}
	return failed
}

// begin checks that they may be handled now.
func (m *laneModel) begin(ds []*longshore.Delivery) (steps []modelStep) {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	var earlier []int // of this call
	for _, d := range ds {
		msg := m.b.messages[d.Body[0]]
		bad := func(format string, args ...any) {
			m.wrong = append(m.wrong, fmt.Sprintf("message %d of %q (attempt %d): ", msg.no, msg.key, d.Attempt)+fmt.Sprintf(format, args...))
		}
		if d.Attempt > 3 && m.policy != container.DeadLetterKeep {
			bad("handled after its last attempt")
		}
		if msg.where == "done" && d.Owned() { // else it was lost on its way to the handler
			bad("handled when it was done")
		}
		if msg.key != "" && m.keys[msg.key] > 0 {
			bad("handled beside another of its key")
		}
		for _, before := range m.b.messages[:msg.no] {
			if msg.key != "" && before.key == msg.key && before.where != "done" && !before.givenUp && !slices.Contains(earlier, before.no) {
				bad("overtakes %d, which is %s", before.no, before.where)
			}
		}
		earlier = append(earlier, msg.no)
		step := modelStep{kind: "ack"}
		if msg.calls < len(msg.script) {
			step = msg.script[msg.calls]
		}
		msg.calls++
		steps = append(steps, step)
		m.note("message %d of %q, attempt %d, begins: %v", msg.no, msg.key, d.Attempt, step)
	}
	m.count(ds, 1)
	return steps
}

func (m *laneModel) end(ds []*longshore.Delivery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range ds {
		m.note("message %d ends, ours %t", d.Body[0], d.Owned())
	}
	m.count(ds, -1)
}

// count counts handlers by key. The lock is held.
func (m *laneModel) count(ds []*longshore.Delivery, n int) {
	for _, d := range ds {
		m.keys[string(d.Key)] += n
	}
}
