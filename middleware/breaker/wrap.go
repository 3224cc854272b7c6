package breaker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// Unavailable says that the handler cannot work at all now, whatever the message:
// the breaker opens at once. err may be nil.
func Unavailable(err error) error { return &unavailable{err} }

type unavailable struct{ err error }

func (u *unavailable) Error() string {
	if u.err == nil {
		return "the handler cannot work now"
	}
	return u.err.Error()
}

func (u *unavailable) Unwrap() error { return u.err }

// outcome is what a result says about the dependency.
type outcome uint8

const (
	worked outcome = iota
	failed
	excluded
)

var errPanicked = errors.New("the handler panicked")

// judge looks at a handler's result.
func (b *Breaker) judge(err error) outcome {
	var down *unavailable
	switch {
	case err == nil:
		return worked
	case errors.Is(err, longshore.ErrLost), errors.Is(err, longshore.ErrStopping), errors.Is(err, errCut):
		return excluded
	case errors.As(err, &down):
		return failed
	}
	switch v, _ := longshore.VerdictOf(err); v {
	case longshore.VerdictRelease:
		return excluded
	case longshore.VerdictReject, longshore.VerdictDiscard:
		if b.cfg.IsFailure == nil {
			return worked
		}
	}
	if b.cfg.IsFailure != nil && !b.cfg.IsFailure(err) {
		return worked
	}
	return failed
}

// errCut stands for the error of a handler whose delivery was lost, or cut short by
// a drain, whatever shape it has.
var errCut = errors.New("cut short")

// Wrap puts the breaker around a handler.
func (b *Breaker) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		release, err := b.through(ctx, []*longshore.Delivery{d}, func() error { return next.Handle(ctx, d) }, func(err error) error { return err })
		if release {
			return longshore.Release(err, b.left())
		}
		return err
	})
}

// through makes a call if the breaker lets it; whole is what its result is as one. It
// reports whether what failed is to be released: the breaker is open now.
func (b *Breaker) through(ctx context.Context, ds []*longshore.Delivery, call func() error, whole func(error) error) (release bool, err error) {
	p, err := b.enter(ctx, ds)
	if err != nil {
		return false, err
	}
	clean := false
	defer func() {
		if !clean {
			b.leave(p, errPanicked)
		}
	}()
	err = call()
	clean = true
	return b.leave(p, cut(ctx, whole(err))), err
}

// WrapBatch puts the breaker around a batch handler. A batch is one call; it failed
// if any of its deliveries did.
func (b *Breaker) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		release, err := b.through(ctx, ds, func() error { return next.HandleBatch(ctx, ds) }, b.worst)
		if !release {
			return err
		}
		var each longshore.BatchError
		if !errors.As(err, &each) {
			return longshore.Release(err, b.left())
		}
		released := longshore.BatchError{}
		for i, e := range each {
			released[i] = e
			if b.judge(e) == failed {
				released[i] = longshore.Release(e, b.left())
			}
		}
		return released
	})
}

// worst is the error of a batch that says the most about the dependency.
func (b *Breaker) worst(err error) error {
	var each longshore.BatchError
	if !errors.As(err, &each) {
		return err
	}
	for _, e := range each {
		if b.judge(e) == failed {
			return e
		}
	}
	return nil
}

func cut(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, longshore.ErrLost) || errors.Is(cause, longshore.ErrStopping) {
		return errCut
	}
	return err
}

// pass is the leave to call the handler.
type pass struct {
	ds    []*longshore.Delivery
	done  func(error)
	round uint64 // of the state that let it in
	sure  bool   // of that
	trial bool
	ramp  *throttle.Limiter
}

// enter waits until the handler may be called. The error gives the delivery back
// uncounted.
func (b *Breaker) enter(ctx context.Context, ds []*longshore.Delivery) (*pass, error) {
	p, d := &pass{ds: ds}, ds[0]
	for {
		b.wakeUp()
		b.mu.Lock()
		state, round, probing, moved, ramp := b.state, b.round.Load(), b.probing, b.moved, b.ramp
		b.mu.Unlock()
		if state == Open || probing {
			p.giveBack()
			return nil, longshore.Release(ErrOpen, b.left())
		}
		if err := b.yield(ds); err != nil {
			p.giveBack()
			return nil, err
		}
		if ramp != p.ramp {
			p.giveBack()
			if ok, err := climb(ctx, d, ramp); err != nil {
				return nil, longshore.Release(err, 0)
			} else if ok {
				p.ramp = ramp
			}
			continue
		}
		done, err := b.cb.Allow()
		if err == nil {
			p.done, p.trial, p.round, p.sure = done, state == Trial, round, !b.over(round)
			return p, nil
		}
		if err := d.Wait(ctx, func(ctx context.Context) error { return until(ctx, moved) }); err != nil {
			p.giveBack()
			return nil, longshore.Release(err, 0)
		}
	}
}

// climb takes a permit of the ramp, if there is one.
func climb(ctx context.Context, d *longshore.Delivery, ramp *throttle.Limiter) (bool, error) {
	if ramp == nil {
		return false, nil
	}
	if ok, _ := ramp.TryAcquire(time.Now()); ok {
		return true, nil
	}
	err := d.Wait(ctx, ramp.Acquire)
	return err == nil, err
}

func until(ctx context.Context, moved <-chan struct{}) error {
	select {
	case <-moved:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pass) giveBack() {
	if p.ramp != nil {
		p.ramp.Release()
		p.ramp = nil
	}
}

// leave reports a result. It says whether the failure must not count for the
// message: it was a trial, or the breaker is open now.
func (b *Breaker) leave(p *pass, err error) (uncounted bool) {
	p.giveBack()
	o := b.judge(err)
	var down *unavailable
	if !p.sure || !b.over(p.round) {
		// Later it would say nothing any more, and gobreaker would take it as the
		// occasion to begin the trial before its time.
		force := o == failed && errors.As(err, &down)
		if force {
			b.force.Store(true)
		}
		p.done(err)
		if force {
			b.force.Store(false) // a trial that fails opens without asking
		}
	}
	b.mu.Lock()
	if p.trial && o == failed {
		b.suspects.add(p.ds)
	}
	uncounted = o == failed && (p.trial || b.state != Closed)
	if p.trial && b.state == Trial {
		b.move() // the place of one that said nothing is free
	}
	b.mu.Unlock()
	b.publish()
	return uncounted
}

// over says that the state has changed since.
func (b *Breaker) over(round uint64) bool { return b.round.Load() != round }

// left is the time to the next trial.
func (b *Breaker) left() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(time.Until(b.until), time.Second)
}
