package memory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
)

// Op is a call that can be made slow with [Broker.Delay].
type Op uint8

// The calls. OpSettle is the way of an accepted settlement to the broker: the
// verbs of a delivery return at once, what they ask for happens later.
const (
	OpOpen Op = iota
	OpReceive
	OpCancel
	OpRelease
	OpSettle
	OpFlush
	OpClose
	OpPublish
	OpBrowse
	OpBacklog
	numOps
)

// faults are the switches that make a broker misbehave.
type faults struct {
	latency [numOps]atomic.Int64 // added to each operation
	settle  atomic.Int64         // settlements still to fail

	mu        sync.Mutex        // guards what follows
	settleErr error             // of those settlements
	open      map[string]*fault // by queue
	publish   map[string]*fault // by destination
	some      atomic.Bool       // whether publish holds any
}

type fault struct {
	left int   // < 0: until it is taken away
	err  error // what the call returns
}

// take uses the fault up once.
func take(m map[string]*fault, name string) error {
	f := m[name]
	if f == nil || f.left == 0 {
		return nil
	}
	f.left--
	return f.err
}

// Delay makes every op take d longer from now on; 0 ends that. A call whose
// context ends first returns the context's error, except Close, which then
// closes without the broker's answer.
func (b *Broker) Delay(op Op, d time.Duration) {
	if op < numOps {
		b.faults.latency[op].Store(int64(d))
	}
}

// FailOpen makes the next n openings of the queue or topic fail with err; n < 0
// is every one from now on, n = 0 none any more.
func (b *Broker) FailOpen(name string, n int, err error) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	if b.faults.open == nil {
		b.faults.open = map[string]*fault{}
	}
	b.faults.open[name] = &fault{left: n, err: err}
}

// FailPublish makes the next n messages to dest fail with err; n < 0 is every
// one from now on, n = 0 none any more.
func (b *Broker) FailPublish(dest string, n int, err error) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	if b.faults.publish == nil {
		b.faults.publish = map[string]*fault{}
	}
	b.faults.publish[dest] = &fault{left: n, err: err}
	b.faults.some.Store(true)
}

// FailSettle makes the next n settlements that were accepted fail with err when
// they are carried out. Their messages go back to the queue.
func (b *Broker) FailSettle(n int, err error) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.settleErr = err
	b.faults.settle.Store(int64(n))
}

// Drop cuts the connections of the consumers of the named queues and topics,
// of all consumers if none is named: they are down, what they held goes back to
// the queues, and settlements that were accepted but not carried out have failed.
func (b *Broker) Drop(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.consumersOf(names) {
		c.fail(&longshore.Error{Code: longshore.CodeConnLost, Op: "consume from " + c.q.title(), Source: c.q.name,
			Err: fmt.Errorf("connection to %s cut", b.cfg.Name)})
	}
}

func (f *faults) opening(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return take(f.open, name)
}

func (f *faults) publishing(dest string) error {
	if !f.some.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return take(f.publish, dest)
}

func (f *faults) settling() error {
	if f.settle.Load() <= 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle.Add(-1)
	return f.settleErr
}

func (f *faults) delay(op Op) time.Duration { return time.Duration(f.latency[op].Load()) }

// slow waits for as long as the op was told to take.
func (b *Broker) slow(ctx context.Context, op Op) error {
	d := b.faults.delay(op)
	if d <= 0 {
		return nil
	}
	return sleep(ctx, b.clock, d)
}

// DelayAll is Delay for every op.
func (b *Broker) DelayAll(d time.Duration) {
	for op := range numOps {
		b.Delay(op, d)
	}
}

// TakeBack ends the leases of all that consumers of the named queues hold, as if
// their time had passed, all of them before anything is delivered again: what a
// consumer loses must not reach it again before older messages that another one
// loses. The consumers live on.
func (b *Broker) TakeBack(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cs := b.consumersOf(names)
	for _, c := range cs {
		for _, idx := range c.held.unsettled() {
			c.lose(idx)
		}
	}
	for _, c := range cs {
		c.q.dispatch()
	}
}
