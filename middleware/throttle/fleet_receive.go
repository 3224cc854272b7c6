package throttle

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/backoff"
	"github.com/longshore-go/longshore/transport"
)

// receive keeps the control topic open and reads it.
func (f *Fleet) receive(ctx context.Context) {
	again := backoff.Policy{Initial: 250 * time.Millisecond, Max: 15 * time.Second, Multiplier: 2, Jitter: 0.2}
	for tries := 1; ctx.Err() == nil; tries++ {
		began := f.now()
		err := f.drink(ctx)
		if ctx.Err() != nil {
			return
		}
		f.lost(err)
		if f.now().Sub(began) > again.Max {
			tries = 1
		}
		timer := time.NewTimer(again.Delay(tries, rand.Float64()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// drink reads one subscription to its end.
func (f *Fleet) drink(ctx context.Context) error {
	open, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	c, err := f.src.Open(open, transport.OpenOptions{Base: ctx, Window: 100, MaxWindow: 100})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = c.Close(ctx) // nothing of it is of use any more
	}()
	f.found(ctx, c)
	for {
		ds, err := c.Receive(ctx, 100)
		for _, d := range ds {
			f.hear(ctx, d)
			_ = d.Ack(ctx) // one that comes again is recognised
		}
		if err != nil {
			return err
		}
	}
}

// hear obeys one message and answers what wants an answer.
func (f *Fleet) hear(ctx context.Context, m *longshore.Delivery) {
	if len(m.Body) == 0 {
		return // a tombstone of a compacted topic
	}
	f.linkMu.Lock()
	live := f.echoed
	f.linkMu.Unlock()
	d, fresh := f.read(ctx, m.Body, live)
	f.correct(ctx)
	if d == nil {
		return
	}
	f.wake()
	if d.Member == nil {
		f.linkMu.Lock()
		if len(f.heard) < 10*maxTargets {
			f.heard[d.ID] = true
		}
		f.linkMu.Unlock()
		if fresh {
			f.sayHello(ctx, false, d.ID)
		}
		return
	}
	if d.Member.Instance == f.cfg.Instance {
		f.echo(ctx)
	} else if d.Member.Joining {
		f.welcome(ctx)
	}
	if id := d.Member.Applied; id != "" {
		f.linkMu.Lock()
		if seen := f.acks[id]; seen != nil {
			seen[d.Member.Instance] = true
		}
		f.linkMu.Unlock()
	}
}

// welcome answers a newcomer: that we are here, and the state in force, unless
// another owner was quicker.
func (f *Fleet) welcome(ctx context.Context) {
	if f.cfg.ListenOnly {
		return
	}
	f.linkMu.Lock()
	clear(f.heard)
	busy := f.welcoming
	f.welcoming = true
	f.linkMu.Unlock()
	if busy {
		return // the same answer is for all who ask at a time
	}
	f.later(ctx, around(settle/4), func() { f.sayHello(ctx, false, "") })
	f.later(ctx, around(settle/2), func() {
		f.linkMu.Lock()
		f.welcoming = false
		f.linkMu.Unlock()
		f.mu.Lock()
		tell := f.book.announceable(f.now())
		f.mu.Unlock()
		for _, e := range tell {
			f.linkMu.Lock()
			quicker := f.heard[e.d.ID]
			f.linkMu.Unlock()
			if !quicker {
				f.announce(ctx, e)
			}
		}
	})
}

// echo: what was published before our first word has been read, and all who live
// have had their chance once the answers are in.
func (f *Fleet) echo(ctx context.Context) {
	f.linkMu.Lock()
	first := !f.echoed
	f.echoed = true
	f.linkMu.Unlock()
	if !first {
		return
	}
	f.later(ctx, settle, func() {
		f.mu.Lock()
		f.book.known, f.book.settled = true, true
		events := f.refresh(f.now())
		f.mu.Unlock()
		f.tell(events)
		f.wake()
		f.know()
	})
}

// know lets Start return.
func (f *Fleet) know() {
	f.linkMu.Lock()
	defer f.linkMu.Unlock()
	select {
	case <-f.snapshot:
	default:
		close(f.snapshot)
	}
}

func (f *Fleet) found(ctx context.Context, c transport.Consumer) {
	f.linkMu.Lock()
	f.connected, f.since, f.lastErr = true, f.now(), nil
	f.echoed = false
	f.linkMu.Unlock()
	f.mu.Lock()
	f.book.thaw(f.now())
	f.book.settled = false
	f.mu.Unlock()
	f.tell([]FleetEvent{{Kind: FleetConnected}})
	f.sayHello(ctx, true, "")
	if f.cfg.ListenOnly {
		f.later(ctx, settle, func() { f.readOut(ctx, c) })
	}
}

// readOut waits, without a word of our own, until the topic is read to its end.
func (f *Fleet) readOut(ctx context.Context, c transport.Consumer) {
	b, ok := c.(transport.Backlogger)
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for ok {
		ask, cancel := context.WithTimeout(ctx, time.Second)
		n, _, err := b.Backlog(ask)
		cancel()
		if err == nil && n == 0 {
			break
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
	f.mu.Lock()
	f.book.settled = true
	f.mu.Unlock()
	f.know()
}

func (f *Fleet) lost(err error) {
	if err == nil {
		err = errors.New("the subscription ended")
	}
	f.linkMu.Lock()
	was := f.connected
	f.connected, f.lastErr = false, err
	if was || f.since.IsZero() {
		f.since = f.now()
	}
	f.linkMu.Unlock()
	f.mu.Lock()
	f.book.freeze(f.now())
	f.mu.Unlock()
	f.tell([]FleetEvent{{Kind: FleetLost, Reason: err.Error()}})
}
