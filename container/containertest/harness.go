package containertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// fault is one thing that a broker may do to a handler.
type fault struct {
	name    string
	places  int // in how many places of a handler it is tried
	prepare func(p *play)
}

// looks is at how many looks at its context a handler is hit: behind the first two or three
// steps it has usually done what can be done by half.
const looks = 3

func faults() []fault {
	return []fault{
		{"messages come twice", 1, (*play).twice},
		{"crash before the effect", 1, (*play).crashBefore},
		{"crash after the effect", 1, (*play).crashAfter},
		{"delivery lost while it is worked on", looks + 1, (*play).takeBack},
		{"delivery given to another while it is worked on", looks + 1, (*play).giveAway},
		{"another order", 1, (*play).shuffle},
		{"stop in the middle", looks + 1, (*play).stopMidway},
	}
}

// play is one run.
type play struct {
	rnd    *rand.Rand
	broker *memory.Broker
	msgs   []*longshore.Message
	hits   map[string]bool // ids of the messages that have the fault, once each
	place  int             // 0 = before the handler, else its n-th look at the context, or its end

	strike  func(d *longshore.Delivery) // the fault, at its place
	crash   func(h longshore.Handler, ctx context.Context, d *longshore.Delivery) error
	stops   chan struct{}
	second  longshore.Handler // what another process would do with a delivery
	others  sync.WaitGroup    // those who do
	held    atomic.Bool       // one of them waits for the first
	reached atomic.Bool       // a handler has looked so often

	mu     sync.Mutex
	struck map[string]bool
}

func newPlay(s Subject, seed uint64) *play {
	p := &play{rnd: rand.New(rand.NewPCG(seed, 1)), broker: memory.New(memory.Config{}), hits: map[string]bool{}, //nolint:gosec // a fault, not a secret
		stops: make(chan struct{}, len(s.Messages)), struck: map[string]bool{}}
	for i, m := range s.Messages {
		c := *m
		if c.ID == "" {
			c.ID = fmt.Sprintf("containertest-%d", i)
		}
		p.msgs = append(p.msgs, &c)
	}
	for _, i := range p.rnd.Perm(len(p.msgs))[:(len(p.msgs)+1)/2] {
		p.hits[p.msgs[i].ID] = true
	}
	return p
}

func (p *play) name(f fault) string {
	switch {
	case f.places == 1:
		return f.name
	case p.place == 0:
		return f.name + ", before its first step"
	case !p.reached.Load():
		return f.name + ", at its end"
	}
	return fmt.Sprintf("%s, when it looked at its context for the %s time", f.name, [looks]string{"first", "second", "third"}[p.place-1])
}

func (p *play) config(cfg container.Config) container.Config {
	cfg.Logger, cfg.DrainTimeout = zap.NewNop(), -1
	if cfg.Order == nil {
		cfg.Order = container.ByKey
	}
	return cfg
}

// wrap lets the fault happen to the messages that are hit, once to each.
func (p *play) wrap(h longshore.Handler) longshore.Handler {
	if p.strike == nil && p.crash == nil {
		return h
	}
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		if !p.first(d.ID) {
			return h.Handle(ctx, d)
		}
		if p.crash != nil {
			return p.crash(h, ctx, d)
		}
		g := &glance{Context: ctx}
		g.left.Store(int32(p.place)) //nolint:gosec // at most looks
		strike := sync.OnceFunc(func() { p.strike(d) })
		g.happen = func() { p.reached.Store(true); strike() }
		if p.place == 0 {
			strike()
		}
		err := h.Handle(g, d) //nolint:contextcheck // g has ctx in it
		strike()              // it did not look so often
		return err
	})
}

// first tells whether this message is to be hit, and now.
func (p *play) first(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hits[id] || p.struck[id] {
		return false
	}
	p.struck[id] = true
	return true
}

// twice publishes half of the messages again, later or at once.
func (p *play) twice() {
	for _, m := range slices.Clone(p.msgs) {
		if p.hits[m.ID] {
			c := *m
			p.msgs = append(p.msgs, &c)
		}
	}
}

var errCrash = errors.New("containertest: the process is gone before it could ack")

func (p *play) crashBefore() {
	p.crash = func(longshore.Handler, context.Context, *longshore.Delivery) error {
		return longshore.Retry(errCrash, time.Millisecond)
	}
}

func (p *play) crashAfter() {
	p.crash = func(h longshore.Handler, ctx context.Context, d *longshore.Delivery) error {
		if err := h.Handle(ctx, d); err != nil {
			return err
		}
		return longshore.Retry(errCrash, time.Millisecond)
	}
}

// takeBack ends the lease; the message comes again.
func (p *play) takeBack() {
	p.strike = func(d *longshore.Delivery) {
		p.broker.TakeBack(queue)
		await(d.Context().Done())
	}
}

func (p *play) stopMidway() {
	p.strike = func(d *longshore.Delivery) {
		p.stops <- struct{}{}
		await(d.Context().Done())
	}
}

// await waits for the end of a context, which comes; a mistake here is not to hang a test.
func await(ended <-chan struct{}) {
	t := time.NewTimer(leaveWait)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
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

// glance is a context that makes something happen at one of the looks at it: a handler
// is between two of its steps then, where it would notice.
type glance struct {
	context.Context //nolint:containedctx // it is one
	left            atomic.Int32
	happen          func()
}

func (g *glance) look() {
	if g.left.Add(-1) == 0 {
		g.happen()
	}
}

func (g *glance) Err() error {
	g.look()
	return g.Context.Err()
}

func (g *glance) Done() <-chan struct{} {
	g.look()
	return g.Context.Done()
}
