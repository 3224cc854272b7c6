package containertest

import (
	"context"
	"reflect"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// Subject is a handler whose effects can be looked at.
type Subject struct {
	// New makes the handler in a fresh world, and a function that reads what it has
	// done there: rows, files, calls of a fake. The results of two worlds are compared
	// by reflect.DeepEqual, so leave times and random ids out. Required.
	New func() (h longshore.Handler, effects func() any)
	// Messages are given to it, in this order. Give keys to those whose order
	// matters: without a key they also come shuffled. Required.
	Messages []*longshore.Message
	// Config of the container; what it says about DrainTimeout and Logger is replaced.
	Config container.Config
}

// AtLeastOnce finds out whether a handler bears what every broker may do to it:
// messages that come twice, a crash before the effect or between it and the ack, a
// delivery taken back while it is worked on, one that another process is given and has done
// before the first goes on, another order of what has no key, a stop in the middle. After
// each of them the effects must be those of a run in which nothing happened; a difference
// fails the test and names the fault. seed chooses which messages are hit; a failure says
// it, so that it can be played again.
//
// The middle of a handler is where it looks at its context, by itself or by a call that it
// gives it to: a lost delivery and a stop come before its first step and at each of the
// first three looks, and where there are none when it has ended, before the ack. They
// end the context, as they do anywhere. The other process is a second call of the handler,
// through Config.Middleware, on a goroutine of its own: its world must bear that.
//
// It works on the memory transport, in the time that the handler needs.
func AtLeastOnce(t testing.TB, s Subject, seed uint64) {
	t.Helper()
	if s.New == nil || len(s.Messages) == 0 {
		t.Fatal("containertest.AtLeastOnce: Subject.New and Subject.Messages are required")
	}
	want := run(t, s, newPlay(s, seed))
	for _, f := range faults() {
		for place := range f.places {
			p := newPlay(s, seed)
			p.place = place
			f.prepare(p)
			if got := run(t, s, p); !reflect.DeepEqual(got, want) {
				t.Errorf("%s (seed %d): the effects are\n\t%+v\nwithout it they are\n\t%+v", p.name(f), seed, got, want)
			}
			if place > 0 && !p.reached.Load() {
				break // not reached, so later places would not be either
			}
		}
	}
}

const queue = "containertest"

func run(t testing.TB, s Subject, p *play) any {
	t.Helper()
	h, effects := s.New()
	p.second = longshore.Chain(h, s.Config.Middleware...)
	c, err := container.New(p.broker.Queue(queue, memory.QueueConfig{}), p.wrap(h), p.config(s.Config))
	if err != nil {
		t.Fatal(err)
	}
	PublishMessages(t, c, p.msgs...)
	start := func() {
		ctx, cancel := context.WithTimeout(context.Background(), startWait)
		defer cancel()
		if err := c.Start(ctx); err != nil {
			t.Fatalf("start: %v", err)
		}
	}
	start()
	idleLooks := 0
	poll(idleWait, func() bool {
		idle, err := c.Idle(t.Context())
		select {
		case <-p.stops:
			_ = c.Stop(context.Background()) // abandoning is the fault
			start()
			idle = false
		default:
		}
		if idleLooks++; !idle {
			idleLooks = 0
		}
		return idleLooks > 2 || err != nil // one look can miss a message on its way from the broker
	})
	WaitIdle(t, c)
	if err := c.Stop(context.Background()); err != nil {
		t.Errorf("stop: %v", err)
	}
	p.others.Wait()
	return effects()
}
