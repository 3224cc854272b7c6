package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Unparked is what [Unpark] has done.
type Unparked struct {
	Forwarded int64 // messages of the key
	Left      int64 // messages of other keys, which stay where they are
}

// The limits of one Unpark.
const (
	unparkWindow = 10_000           // so many messages of other keys are held until the end, to keep their places
	unparkFirst  = 15 * time.Second // wait for the first message: a Kafka group needs some seconds to assign its partitions
	unparkQuiet  = time.Second      // wait for one more
	unparkBatch  = 100
)

// Unpark forwards the parked messages of one key in their order, and releases the key in the
// ledger. cfg.From is the parking place. Messages of other keys are received and given back when
// all have been seen, which counts as a delivery of each. Stop the route itself first: it may park
// more of the key, and learns of its release when it starts again.
//
// A message that the target still refuses ends it with the error of the target; that message and
// those behind it stay parked.
func Unpark(ctx context.Context, cfg Config, key []byte) (done Unparked, err error) {
	cfg.OnUnsendable = StopRoute
	r, err := New(cfg)
	if err != nil {
		return done, err
	}
	left, err := remainingAt(ctx, r.from)
	if err != nil {
		return done, err
	}
	if err := r.targetExists(ctx); err != nil {
		return done, err
	}
	pub, dest, err := r.out.Publisher(ctx)
	if err != nil {
		return done, fmt.Errorf("open the target of route %q: %w", r.name, err)
	}
	to := &batches{ctx: ctx, pub: pub, dest: dest}
	r.f.target.Store(to)
	defer func() { err = errors.Join(err, to.close(context.WithoutCancel(ctx))) }()
	s := sieve{f: r.f, key: key, expected: left.Messages()}
	if s.expected > 0 {
		if err = s.run(ctx, cfg.From); err != nil {
			return s.done, err
		}
	}
	if cfg.Ledger != nil {
		err = cfg.Ledger.l.ReleaseKey(ctx, keyHash(key))
	}
	return s.done, err
}

// sieve takes the messages of a place, and forwards those of a key.
type sieve struct {
	f        *forwarder
	key      []byte
	expected int64 // messages at the place
	done     Unparked
}

// run receives until all that was there has been seen.
func (s *sieve) run(ctx context.Context, from transport.Source) (err error) {
	c, err := from.Open(ctx, transport.OpenOptions{Base: ctx, Window: unparkWindow, MaxWindow: unparkWindow})
	if err != nil {
		return err
	}
	defer func() { // closing gives back what is not settled
		ending := context.WithoutCancel(ctx)
		err = errors.Join(err, c.Flush(ending), c.Close(ending))
	}()
	wait := unparkFirst
	for {
		ds, err := receiveFor(ctx, c, wait)
		if err != nil {
			return err
		}
		for _, d := range ds {
			if err := s.take(ctx, d); err != nil {
				return err
			}
		}
		switch seen := s.done.Forwarded + s.done.Left; {
		case len(ds) > 0:
			if seen >= s.expected {
				wait = unparkQuiet
			}
		case seen >= s.expected:
			return nil
		default:
			return &longshore.Error{Code: longshore.CodeState, Op: "unpark a key", Source: s.f.name, Err: fmt.Errorf("%d of %d parked messages were seen, so the key stays held", seen, s.expected),
				Hint: fmt.Sprintf("stop other consumers of the parking place; with more than %d messages parked, unpark all keys", unparkWindow)}
		}
	}
}

// take forwards a message of the key, and holds any other.
func (s *sieve) take(ctx context.Context, d *longshore.Delivery) error {
	if !bytes.Equal(d.Received().Key, s.key) {
		s.done.Left++
		return nil
	}
	if err := s.f.Handle(ctx, d); err != nil {
		return fmt.Errorf("the key stays held: %w", err)
	}
	if err := d.Ack(ctx); err != nil {
		return err
	}
	s.done.Forwarded++
	return nil
}

// receiveFor returns nothing, and no error, if nothing comes in time.
func receiveFor(ctx context.Context, c transport.Consumer, wait time.Duration) ([]*longshore.Delivery, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ds, err := c.Receive(waiting, unparkBatch)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	return ds, err
}
