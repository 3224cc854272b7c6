package container_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// publish sends messages, of which some fail, panic or take longer than a drain.
func (m *modelled) publish() {
	pub, err := m.b.Publisher(memory.PublisherConfig{})
	if err != nil {
		m.Fatal(err)
	}
	defer pub.Close(context.Background())
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelStep {
		return modelStep{
			kind: rapid.SampledFrom([]string{"ack", "ack", "retry", "error", "reject", "panic", "release", "stubborn"}).Draw(t, "verdict"),
			time: time.Duration(rapid.SampledFrom([]int{0, 0, 7, 137, 1537}).Draw(t, "ms"))*time.Millisecond + 13*time.Microsecond,
		}
	}), 0, 4)
	for range rapid.IntRange(1, 12).Draw(m.T, "messages") {
		msg := &modelMessage{key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.T, "key"), script: steps.Draw(m.T, "script")}
		m.mu.Lock()
		msg.no, msg.quiet = len(m.messages), m.paused
		m.messages = append(m.messages, msg)
		m.mu.Unlock()
		err := pub.Publish(context.Background(), "q", &longshore.Message{ID: fmt.Sprint(msg.no), Key: []byte(msg.key), Body: []byte(fmt.Sprint(msg.no))})
		if err != nil {
			m.Fatal(err)
		}
	}
}

func (m *modelled) handle(ctx context.Context, d *longshore.Delivery) (err error) {
	m.wg.Add(1)
	defer m.wg.Done()
	no, _ := strconv.Atoi(string(d.Body))
	msg, step := m.begin(d, no)
	returned := false
	defer func() { m.end(d, msg, err, !returned) }()
	err = step.act(ctx)
	returned = true
	return err
}

// begin checks that the message may be handled now.
func (m *modelled) begin(d *longshore.Delivery, no int) (*modelMessage, modelStep) {
	now, draining := m.c.Done(), m.c.State() == container.StateDraining
	m.mu.Lock()
	defer m.mu.Unlock()
	msg := m.messages[no]
	wrong := func(format string, args ...any) {
		m.wrong = append(m.wrong, fmt.Sprintf("message %d (attempt %d): ", no, d.Attempt)+fmt.Sprintf(format, args...))
	}
	if m.sure(msg) || msg.final != "" && !d.Origin.Redelivered {
		wrong("handled again after its %s", msg.final)
	}
	if msg.quiet && (!m.counts || !draining) { // which works off what was received
		wrong("published and handled in a pause")
	}
	here := 1
	for other, call := range m.handlers {
		if call.run == now {
			here++
		}
		if call.m == msg && other.Owned() {
			wrong("has two handlers at once")
		}
		if m.keyed && call.m.key == msg.key && (other.Owned() || call.run == now) {
			wrong("handled beside %d of the same key", call.m.no)
		}
	}
	if here > m.max && !draining { // which goes on with what it has
		wrong("%d handlers at once, of %d workers", here, m.max)
	}
	if m.keyed {
		for _, before := range m.messages[:no] {
			if before.key == msg.key && before.final == "" {
				wrong("overtakes %d of the same key", before.no)
			}
		}
	}
	m.handlers[d] = modelCall{msg, now}
	step := modelStep{kind: "ack"}
	if msg.calls < len(msg.script) {
		step = msg.script[msg.calls]
	}
	msg.calls++
	m.note("message %d of %s, attempt %d, begins: %v", no, msg.key, d.Attempt, step)
	return msg, step
}

// end notes what becomes of the message, if it is still ours.
func (m *modelled) end(d *longshore.Delivery, msg *modelMessage, err error, panicked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.handlers, d)
	m.note("message %d ends: %v, ours %t", msg.no, err, d.Owned())
	if !d.Owned() || errors.Is(err, longshore.ErrStopping) {
		return
	}
	v, _ := longshore.VerdictOf(err)
	switch msg.at = time.Now(); {
	case err == nil && !panicked:
		msg.final = "ack"
	case v == longshore.VerdictReject, v != longshore.VerdictRelease && d.Attempt >= 3:
		msg.final = "dead"
	}
}

func (s modelStep) act(ctx context.Context) error {
	if s.kind == "stubborn" {
		<-time.After(s.time)
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(s.time):
	}
	switch s.kind {
	case "retry":
		return longshore.Retry(errors.New("busy"), s.time)
	case "error":
		return errors.New("failed")
	case "reject":
		return longshore.Reject(errors.New("never"))
	case "panic":
		panic("a handler's panic")
	case "release":
		return longshore.Release(errors.New("not me"), s.time)
	}
	return nil
}
