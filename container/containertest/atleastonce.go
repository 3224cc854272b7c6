package containertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

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

// fault is one thing that a broker may do to a handler.
type fault struct {
	name string
	play func(p *play)
}

// AtLeastOnce finds out whether a handler bears what every broker may do to it:
// messages that come twice, a crash after the effect and before the ack, a delivery
// taken back while it is worked on, another order of what has no key, a stop in the
// middle. After each of them the effects must be those of a run in which nothing
// happened; a difference fails the test and names the fault. seed chooses which
// messages are hit; a failure says it, so that it can be played again.
//
// It works on the memory transport, in the time that the handler needs.
func AtLeastOnce(t testing.TB, s Subject, seed uint64) {
	t.Helper()
	if s.New == nil || len(s.Messages) == 0 {
		t.Fatal("containertest.AtLeastOnce: Subject.New and Subject.Messages are required")
	}
	want := run(t, s, seed, func(*play) {})
	for _, f := range []fault{
		{"messages come twice", (*play).twice},
		{"crash after the effect", (*play).crashAfter},
		{"delivery lost while it is worked on", (*play).takeBack},
		{"another order", (*play).shuffle},
		{"stop in the middle", (*play).stopMidway},
	} {
		if got := run(t, s, seed, f.play); !reflect.DeepEqual(got, want) {
			t.Errorf("%s (seed %d): the effects are\n\t%+v\nwithout it they are\n\t%+v", f.name, seed, got, want)
		}
	}
}

// play is one run.
type play struct {
	rnd    *rand.Rand
	broker *memory.Broker
	msgs   []*longshore.Message
	after  func(d *longshore.Delivery) error // what becomes of a success
	midway bool

	mu  sync.Mutex
	hit map[string]bool // messages that had their fault
}

const queue = "containertest"

func run(t testing.TB, s Subject, seed uint64, prepare func(*play)) any {
	t.Helper()
	p := &play{rnd: rand.New(rand.NewPCG(seed, 1)), broker: memory.New(memory.Config{}), hit: map[string]bool{}} //nolint:gosec // a fault, not a secret
	for i, m := range s.Messages {
		c := *m
		if c.ID == "" {
			c.ID = fmt.Sprintf("containertest-%d", i)
		}
		p.msgs = append(p.msgs, &c)
	}
	prepare(p)
	h, effects := s.New()
	cfg := s.Config
	cfg.Logger, cfg.DrainTimeout = zap.NewNop(), -1
	if cfg.Order == nil {
		cfg.Order = container.ByKey
	}
	c, err := container.New(p.broker.Queue(queue, memory.QueueConfig{}), p.wrap(h), cfg)
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
	if p.midway {
		poll(idleWait, func() bool { s := c.Stats(); return s.Acked+s.Retried > int64(len(p.msgs)/2) })
		_ = c.Stop(context.Background()) // abandoning is the fault
		start()
	}
	WaitIdle(t, c)
	if err := c.Stop(context.Background()); err != nil {
		t.Errorf("stop: %v", err)
	}
	return effects()
}

// wrap lets the fault happen after a success of the handler, once for a message.
func (p *play) wrap(h longshore.Handler) longshore.Handler {
	if p.after == nil {
		return h
	}
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		err := h.Handle(ctx, d)
		if err != nil || !p.first(d.ID) {
			return err
		}
		return p.after(d)
	})
}

// first tells, by chance, whether this message is one to be hit, and now.
func (p *play) first(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, seen := p.hit[id]; seen {
		return false
	}
	p.hit[id] = p.rnd.IntN(2) == 0 || len(p.msgs) == 1
	return p.hit[id]
}

// twice publishes half of the messages again, later or at once.
func (p *play) twice() {
	for _, m := range append([]*longshore.Message(nil), p.msgs...) {
		if p.rnd.IntN(2) == 0 || len(p.msgs) == 1 {
			c := *m
			p.msgs = append(p.msgs, &c)
		}
	}
}

var errCrash = errors.New("containertest: the process is gone before it could ack")

func (p *play) crashAfter() {
	p.after = func(*longshore.Delivery) error { return longshore.Retry(errCrash, time.Millisecond) }
}

func (p *play) takeBack() {
	p.after = func(*longshore.Delivery) error {
		p.broker.TakeBack(queue)
		return nil // its ack comes too late
	}
}

// shuffle moves what has no key; those of a key stay in their order.
func (p *play) shuffle() {
	var free []int
	for i, m := range p.msgs {
		if m.Key == nil {
			free = append(free, i)
		}
	}
	p.rnd.Shuffle(len(free), func(i, j int) {
		a, b := free[i], free[j]
		p.msgs[a], p.msgs[b] = p.msgs[b], p.msgs[a]
	})
}

func (p *play) stopMidway() { p.midway = true }
