package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// producer publishes orders one after the other, so that the ledger knows in
// which order those of a key were sent.
type producer struct {
	ledger *ledger
	side   atomic.Pointer[outlet]
	rng    *rand.Rand
	todo   chan batch
	ended  atomic.Bool // no steady orders any more
	held   atomic.Bool // steady orders wait for the release
}

// outlet is a broker that orders are published to.
type outlet struct {
	pub  transport.Publisher
	dest string
	sent atomic.Int64 // confirmed orders
}

type batch struct {
	n      int
	poison bool
	done   chan struct{}
}

func newProducer(l *ledger, to *outlet, seed uint64) *producer {
	p := &producer{ledger: l, rng: rand.New(rand.NewPCG(seed, 1)), todo: make(chan batch)}
	p.side.Store(to)
	return p
}

// run publishes at the steady rate from the first batch on, until ctx ends. What
// was begun is finished.
func (p *producer) run(ctx context.Context) {
	const every = 50 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	// Cancelling a publish would leave open whether it arrived.
	finish := context.WithoutCancel(ctx)
	var since time.Time
	sent := 0
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-p.todo:
			p.publish(finish, b.n, b.poison)
			close(b.done)
			if since.IsZero() {
				since = time.Now()
			}
		case <-tick.C:
			if since.IsZero() || p.ended.Load() || p.held.Load() {
				continue
			}
			due := int(time.Since(since).Seconds()*steadyRate) - sent
			sent += due
			p.publish(finish, min(due, steadyRate), false) // what an outage of seconds held up is not made up for
		}
	}
}

// rest ends the steady orders.
func (p *producer) rest() { p.ended.Store(true) }

// hold keeps steady orders back, and release sends them and those that follow to another broker.
// A batch that is being published is not interrupted.
func (p *producer) hold() { p.held.Store(true) }

func (p *producer) release(to *outlet) {
	p.side.Store(to)
	p.held.Store(false)
}

// extra publishes n more and waits until they are confirmed.
func (p *producer) extra(ctx context.Context, n int, poison bool) {
	b := batch{n: n, poison: poison, done: make(chan struct{})}
	select {
	case p.todo <- b:
	case <-ctx.Done():
		return
	}
	<-b.done
}

func (p *producer) publish(ctx context.Context, n int, poison bool) {
	for n > 0 {
		size := min(n, publishBatch)
		n -= size
		numbers, msgs := make([]int, size), make([]*longshore.Message, size)
		for i := range msgs {
			o := order{key: p.rng.IntN(keys), poison: poison, flaky: !poison && p.rng.IntN(flakyShare) == 0}
			numbers[i] = p.ledger.add(o)
			msgs[i] = newMessage(numbers[i], o)
		}
		p.send(ctx, numbers, msgs)
	}
}

// send publishes and notes what was confirmed. What was not may have arrived all
// the same: it is not sent again, the order of a key would suffer.
func (p *producer) send(ctx context.Context, numbers []int, msgs []*longshore.Message) {
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	to := p.side.Load()
	err := to.pub.Publish(ctx, to.dest, msgs...)
	var partial *transport.PartialError
	if err != nil && !errors.As(err, &partial) {
		return
	}
	for i, n := range numbers {
		if partial == nil || partial.Failed[i] == nil {
			p.ledger.confirm(n)
			to.sent.Add(1)
		}
	}
}
