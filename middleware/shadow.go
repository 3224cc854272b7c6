package middleware

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
)

// ShadowConfig is the configuration of [NewShadow].
type ShadowConfig struct {
	// Handler gets every message too; its result is only compared. Required.
	Handler longshore.Handler
	// Compare hears of both results, in the goroutine of the second handler; nil =
	// nothing is compared, the second handler only runs. panicked is what the second
	// one panicked with, nil if it did not.
	Compare func(d *longshore.Delivery, main, shadow error, panicked any)
	// Timeout ends the context of the second handler; 0 = 30 s.
	Timeout time.Duration
	// Parallel is how many of the second handler run at most; 0 = 16. Messages
	// beyond it are not shown to it, and counted.
	Parallel int
}

const (
	shadowTimeout  = 30 * time.Second
	shadowParallel = 16
)

// Shadow runs a second handler alongside the first: a new version, or the same work on
// another store. It gets a delivery of its own, which cannot be settled, and holds
// nobody up: the verdict is the first handler's, at once. It works on single
// deliveries, not in a container with a batch handler.
type Shadow struct {
	cfg   ShadowConfig
	slots chan struct{}
	wg    sync.WaitGroup

	mu      sync.Mutex
	skipped int64
}

// NewShadow makes one; a nil Handler makes the container refuse to start.
func NewShadow(cfg ShadowConfig) *Shadow {
	if cfg.Timeout <= 0 {
		cfg.Timeout = shadowTimeout
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = shadowParallel
	}
	return &Shadow{cfg: cfg, slots: make(chan struct{}, cfg.Parallel)}
}

// Name is "shadow".
func (*Shadow) Name() string { return nameShadow }

// Check refuses a missing handler.
func (s *Shadow) Check(_ context.Context, f longshore.Facts) error {
	if s.cfg.Handler != nil {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeConfig, Op: "middleware shadow", Source: f.Container, Err: errNoShadow, Hint: "set ShadowConfig.Handler"}
}

// Skipped is how many messages the second handler was not shown.
func (s *Shadow) Skipped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skipped
}

// Wait returns when no second handler runs any more, or ctx ends.
func (s *Shadow) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wrap runs the second handler alongside next.
func (s *Shadow) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		select {
		case s.slots <- struct{}{}:
		default:
			s.mu.Lock()
			s.skipped++
			s.mu.Unlock()
			return next.Handle(ctx, d)
		}
		result := make(chan error, 1)
		s.run(context.WithoutCancel(ctx), d, result)
		finished := false
		defer func() {
			if !finished { // it panicked: there is nothing to compare with
				close(result)
			}
		}()
		err := next.Handle(ctx, d)
		finished = true
		result <- err
		return err
	})
}

// run starts the second handler on a copy.
func (s *Shadow) run(ctx context.Context, d *longshore.Delivery, first <-chan error) {
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	twin := longshore.NewDelivery(limited, settledAlready{}, 0)
	twin.Message, twin.Origin, twin.Attempt = d.Message, d.Origin, d.Attempt
	s.wg.Go(func() {
		defer func() { <-s.slots }()
		defer cancel()
		panicked, err := s.call(limited, twin)
		main, ok := <-first
		if ok && s.cfg.Compare != nil {
			s.cfg.Compare(twin, main, err, panicked)
		}
	})
}

func (s *Shadow) call(ctx context.Context, d *longshore.Delivery) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, s.cfg.Handler.Handle(ctx, d)
}

// settledAlready is the settler of a delivery that belongs to another owner.
type settledAlready struct{}

func (settledAlready) Ack(context.Context, uint64) error { return longshore.ErrSettled }
func (settledAlready) Nack(context.Context, uint64, time.Duration, int) error {
	return longshore.ErrSettled
}
func (settledAlready) Reject(context.Context, uint64, error) error { return longshore.ErrSettled }
func (settledAlready) Extend(context.Context, uint64, time.Duration) error {
	return longshore.ErrSettled
}

var errNoShadow = errors.New("no second handler")
