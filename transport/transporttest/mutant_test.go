package transporttest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// mutant is a transport that passes everything on to the memory transport and
// has one bug, or none.
type mutant struct {
	fullSource
	bug  string
	b    *memory.Broker
	t    testing.TB
	mu   sync.Mutex
	last *mutantConsumer // for bugs that mix up generations
	ends int             // consumers that were closed

	opened []*mutantConsumer // all of them, for the list of consumers
}

// fullSource and fullConsumer are all that the memory transport's are.
type (
	fullSource interface {
		transport.Source
		transport.Describer
		transport.Outlet
		transport.Browser
		transport.Prober
	}
	fullConsumer interface {
		transport.Consumer
		transport.Resizer
		transport.Bufferer
		transport.Pauser
		transport.Backlogger
		transport.CapabilityReporter
	}
)

func (m *mutant) name() string { return m.Describe().Name }

func (m *mutant) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	p, self, err := m.fullSource.Publisher(ctx)
	return &mutantPublisher{Publisher: p, m: m}, self, err
}

func (m *mutant) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	ds, next, err := m.fullSource.Browse(ctx, from, n)
	if m.bug == "browse-takes" && err == nil {
		m.b.Purge(m.name())
	}
	if m.bug == "browse-never-ends" && len(ds) > 0 {
		return ds, "0", err
	}
	return ds, next, err
}

func (m *mutant) Probe(ctx context.Context) error {
	if m.bug == "probe-always-well" {
		return nil
	}
	return m.fullSource.Probe(ctx)
}

// untilCleanup is for bugs that wait for ever: the test's end sets them free.
func (m *mutant) untilCleanup() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	m.t.Cleanup(cancel)
	return ctx
}

func (m *mutant) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c := &mutantConsumer{m: m, obs: o.Observer, ops: o.Operations, base: o.Base, byInner: map[*longshore.Delivery]*longshore.Delivery{}, held: map[uint64]*longshore.Delivery{}, untold: make(chan func(), 10), alone: make(chan struct{}, 1)}
	if c.base == nil || m.bug == "base-ignored" {
		c.base = context.Background()
	}
	c.own = &mutantSettler{c}
	o.Observer = c
	o.Paused = o.Paused && m.bug != "opens-unpaused"
	inner, err := m.fullSource.Open(ctx, o)
	if err != nil {
		if m.bug == "auth-untyped" {
			err = context.DeadlineExceeded
		}
		return nil, err
	}
	c.inner, _ = inner.(fullConsumer)
	m.mu.Lock()
	prev := m.last
	m.last = c
	m.opened = append(m.opened, c)
	m.mu.Unlock()
	switch m.bug {
	case "open-kills-the-other":
		if prev != nil {
			_ = prev.Close(ctx)
		}
	case "open-context-kills":
		context.AfterFunc(ctx, func() { m.b.Drop(m.name()) })
	case "close-leaks-goroutine":
		stop := m.untilCleanup().Done()
		go func() { <-stop }()
	}
	return c, nil
}

// mutantConsumer hands out deliveries of its own for those of the memory
// transport, so that every verb passes through it.
type mutantConsumer struct {
	m     *mutant
	inner fullConsumer
	obs   transport.Observer
	base  context.Context
	own   *mutantSettler
	ops   transport.Operations

	mu       sync.Mutex
	tag      uint64
	held     map[uint64]*longshore.Delivery              // by tag: the inner ones
	byInner  map[*longshore.Delivery]*longshore.Delivery // ours
	stash    []*longshore.Delivery                       // for the bug in the order
	canceled atomic.Bool
	closed   atomic.Bool
	silent   atomic.Bool
	untold   chan func()
	alone    chan struct{} // held by the one Receive
}

func (c *mutantConsumer) bug() string { return c.m.bug }

func (c *mutantConsumer) Receive(ctx context.Context, most int) ([]*longshore.Delivery, error) {
	select {
	case c.alone <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.alone }()
	ds, err := c.fetch(ctx, most)
	if err != nil {
		return nil, c.receiveError(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*longshore.Delivery, 0, len(ds))
	for _, in := range ds {
		c.tag++
		d := longshore.NewDelivery(c.base, c.own, c.tag)
		d.Message, d.Origin, d.Attempt = in.Message, in.Origin, in.Attempt
		c.distort(d)
		c.held[c.tag] = in
		c.byInner[in] = d
		out = append(out, d)
	}
	return out, nil
}

// receiveAlone is for the mistakes that receive themselves: a Receive that still runs
// owns what it got until it has looked through it.
func (c *mutantConsumer) receiveAlone(ctx context.Context, most int) ([]*longshore.Delivery, error) {
	select {
	case c.alone <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.alone }()
	ds, err := c.inner.Receive(ctx, most)
	return append([]*longshore.Delivery(nil), ds...), err
}

func (c *mutantConsumer) fetch(ctx context.Context, most int) ([]*longshore.Delivery, error) {
	switch c.bug() {
	case "receive-over-max":
		return c.inner.Receive(ctx, most+1)
	case "receive-loses-on-cancel":
		ds, err := c.inner.Receive(ctx, most)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return ds, err
	case "receive-returns-nothing":
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		ds, err := c.inner.Receive(short, most)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, nil
		}
		return ds, err
	case "order-broken":
		if len(c.stash) == 0 {
			ds, err := c.inner.Receive(ctx, 8)
			if err != nil {
				return nil, err
			}
			for i := range ds {
				c.stash = append(c.stash, ds[len(ds)-1-i])
			}
		}
		n := min(most, len(c.stash))
		ds := c.stash[:n]
		c.stash = c.stash[n:]
		return ds, nil
	case "cancel-does-not-reach-broker":
		if c.canceled.Load() {
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			ds, err := c.inner.Receive(short, most)
			if errors.Is(err, context.DeadlineExceeded) {
				err = longshore.ErrCanceled
			}
			return ds, err
		}
	}
	return c.inner.Receive(ctx, most)
}

func (c *mutantConsumer) receiveError(err error) error {
	switch {
	case c.bug() == "close-drops-accepted" && c.silent.Load():
		return longshore.ErrClosed // the mistake is in what is dropped, not in what is told
	case c.bug() == "loss-untyped" && longshore.CodeOf(err) == longshore.CodeConnLost:
		return longshore.ErrClosed
	case c.bug() == "receive-after-close-canceled" && errors.Is(err, longshore.ErrClosed):
		return longshore.ErrCanceled
	}
	return err
}

// distort is where bugs in the content live.
func (c *mutantConsumer) distort(d *longshore.Delivery) {
	switch c.bug() {
	case "redelivered-missing":
		d.Origin.Redelivered = false
	case "close-forgets-redelivered": // what was never nacked
		d.Origin.Redelivered = d.Origin.Redelivered && d.Attempt > 1
	case "identity-changes":
		sub := *d.Origin.Subscription
		sub.Identify = func(d *longshore.Delivery) string { return strconv.Itoa(d.Attempt) + string(d.Body) }
		d.Origin.Subscription = &sub
	case "identity-missing":
		sub := *d.Origin.Subscription
		sub.Identify, d.ID = nil, ""
		d.Origin.Subscription = &sub
	case "attempt-believed":
		if n, ok := d.Headers.Get("longshore-attempt"); ok {
			if n, ok := n.(int64); ok {
				d.Attempt = int(n)
			}
		}
	case "attempt-missing":
		d.Attempt = 1
	case "headers-unordered":
		seen := map[string]bool{}
		var kept longshore.Headers
		for i := len(d.Headers) - 1; i >= 0; i-- {
			if h := d.Headers[i]; !seen[h.Name] {
				seen[h.Name] = true
				kept = append(kept, h)
			}
		}
		if len(kept) < len(d.Headers) {
			d.Headers = kept
		}
	case "header-kinds-lost":
		for i, h := range d.Headers {
			if n, ok := h.Value.(int16); ok {
				d.Headers = d.Headers.Clone()
				d.Headers[i].Value = string(rune(n))
			}
		}
	case "nil-body-becomes-empty":
		if d.Body == nil {
			d.Body = []byte{}
		}
	case "body-as-text":
		d.Body = []byte(string([]rune(string(d.Body))))
	case "properties-lost":
		d.CorrelationID = ""
	case "origin-missing":
		d.Origin.Subscription = nil
	}
}
