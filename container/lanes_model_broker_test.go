package container_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// laneBroker is a broker that keeps the order of each key whatever comes back: while
// something behind a message is out, the message waits, and what is behind it; so does
// what was lost until the loss is told.
type laneBroker struct {
	caps longshore.Capabilities
	note func(format string, args ...any)

	mu       sync.Mutex
	wake     chan struct{}
	messages []*laneMessage
	out      map[uint64]*laneOut
	tokens   uint64
	at       *laneConsumer

	run                int // of the container
	acked, given, told int // so far
	untold             map[string]int
}

type laneMessage struct {
	no      int
	key     string // "": none
	script  []modelStep
	calls   int
	attempt int
	due     time.Time
	where   string // "here", "out", "done"
	givenUp bool   // by hand: others of its key may go on
}

type laneOut struct {
	*laneMessage
	root *longshore.Delivery
	c    *laneConsumer
}

type laneConsumer struct {
	*laneBroker
	o        transport.OpenOptions
	run      int
	canceled bool
}

func newLaneBroker(caps longshore.Capabilities) *laneBroker {
	return &laneBroker{caps: caps, wake: make(chan struct{}), out: map[uint64]*laneOut{}, untold: map[string]int{}}
}

// poke lets Receive look again. The lock is held.
func (b *laneBroker) poke() {
	close(b.wake)
	b.wake = make(chan struct{})
}

func (b *laneBroker) Capabilities() longshore.Capabilities { return b.caps }

func (b *laneBroker) Open(_ context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = &laneConsumer{laneBroker: b, o: o, run: b.run}
	return b.at, nil
}

func (c *laneConsumer) Receive(ctx context.Context, most int) ([]*longshore.Delivery, error) {
	for {
		c.mu.Lock()
		if c.canceled {
			c.mu.Unlock()
			return nil, longshore.ErrCanceled
		}
		ds, wake := c.take(most), c.wake
		c.mu.Unlock()
		if len(ds) > 0 {
			return ds, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take hands out what may go, oldest first. The lock is held.
func (c *laneConsumer) take(most int) (ds []*longshore.Delivery) {
	last, shut := map[string]int{}, map[string]bool{}
	for _, o := range c.out {
		last[o.key] = max(last[o.key], o.no+1)
	}
	for _, msg := range c.messages {
		if msg.where != "here" || len(ds) == most {
			continue
		}
		if shut[msg.key] || msg.due.After(time.Now()) || msg.key != "" && (last[msg.key] > msg.no || c.untold[msg.key] > 0) {
			shut[msg.key] = msg.key != ""
			continue
		}
		c.tokens++
		d := longshore.NewDelivery(c.o.Base, c, c.tokens)
		d.ID = fmt.Sprint(msg.no)
		d.Body, d.Attempt, d.Origin.Redelivered = []byte{byte(msg.no)}, msg.attempt, msg.calls > 0
		if msg.key != "" {
			d.Key = []byte(msg.key)
		}
		msg.where = "out"
		c.out[c.tokens] = &laneOut{msg, d, c}
		ds = append(ds, d)
		c.note("message %d is handed out (%d), attempt %d", msg.no, c.tokens, msg.attempt)
	}
	return ds
}

// settle ends what is out; nil: it is lost. The lock is held.
func (b *laneBroker) settle(token uint64, where string) *laneOut {
	o := b.out[token]
	if o != nil {
		b.note("message %d is %s (%d)", o.no, where, token)
		delete(b.out, token)
		o.where = where
		b.poke()
	}
	return o
}

func (c *laneConsumer) Ack(_ context.Context, token uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settle(token, "done") == nil {
		return longshore.ErrLost
	}
	c.acked++
	return nil
}

func (c *laneConsumer) Nack(_ context.Context, token uint64, delay time.Duration, attempt int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.settle(token, "here")
	if o == nil {
		return longshore.ErrLost
	}
	c.given++
	o.attempt, o.due = attempt, time.Now().Add(delay)
	time.AfterFunc(delay, func() { c.mu.Lock(); c.poke(); c.mu.Unlock() })
	return nil
}

func (*laneConsumer) Reject(context.Context, uint64, error) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Err: errors.New("no dead-letter destination")}
}
func (*laneConsumer) Extend(context.Context, uint64, time.Duration) error { return nil }
func (*laneConsumer) Release(context.Context) error                       { return nil }
func (*laneConsumer) Flush(context.Context) error                         { return nil }

func (c *laneConsumer) Cancel(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled = true
	c.poke()
	return nil
}

func (c *laneConsumer) Close(ctx context.Context) error {
	_ = c.Cancel(ctx)
	c.lose(0, func(o *laneOut) bool { return o.c == c })
	return nil
}

// lose takes back what is chosen. Who holds it hears of that after so long.
func (b *laneBroker) lose(after time.Duration, chosen func(*laneOut) bool) {
	gone := map[*laneConsumer][]*longshore.Delivery{}
	b.mu.Lock()
	for token, o := range b.out {
		if chosen(o) {
			b.settle(token, "here")
			o.root.Lose(longshore.ErrLost) // before anybody has it again
			gone[o.c] = append(gone[o.c], o.root)
		}
	}
	for _, ds := range gone {
		b.hides(ds, 1)
		slices.SortFunc(ds, func(x, y *longshore.Delivery) int { return cmp.Compare(x.Token(), y.Token()) })
	}
	b.mu.Unlock()
	for c, ds := range gone {
		if after > 0 {
			time.AfterFunc(after, func() { c.tell(ds) })
		} else {
			c.tell(ds)
		}
	}
}

// hides counts, by key, what was lost and not told. The lock is held.
func (b *laneBroker) hides(ds []*longshore.Delivery, n int) {
	for _, d := range ds {
		b.untold[string(d.Key)] += n
	}
	b.poke()
}

func (c *laneConsumer) tell(ds []*longshore.Delivery) {
	c.mu.Lock()
	if c.run == c.laneBroker.run {
		c.told += len(ds)
	}
	c.mu.Unlock()
	c.o.Observer.Lost(ds, longshore.ErrLost)
	c.mu.Lock()
	c.hides(ds, -1)
	c.mu.Unlock()
}

// drop ends the consumer.
func (b *laneBroker) drop() {
	b.mu.Lock()
	c := b.at
	c.canceled = true
	b.poke()
	b.mu.Unlock()
	b.lose(0, func(o *laneOut) bool { return o.c == c })
	c.o.Observer.Down(&longshore.Error{Code: longshore.CodeConnLost, Op: "consume"})
}
