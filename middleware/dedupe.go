package middleware

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// DedupeConfig is the configuration of [Dedupe]. Its zero value is ready for use.
type DedupeConfig struct {
	// Size is how many messages are remembered; 0 = 10,000. The oldest is forgotten.
	Size int
	// For is how long; 0 = 10 minutes.
	For time.Duration
	// ID distinguishes messages; nil = [longshore.Identity]. One with an empty id is
	// always handled, and the first of them is reported by a warning.
	ID func(*longshore.Delivery) string
	// Logger gets that warning; nil = stderr, zap.NewNop() is silence.
	Logger *zap.Logger
}

const (
	dedupeSize  = 10_000
	dedupeFor   = 10 * time.Minute
	dedupeAgain = 100 * time.Millisecond
)

// Dedupe acks what this process has handled with success a moment ago, without
// calling the handler: a message that comes again because its ack was lost, and with
// an ID of your own, or producers that set the header [longshore.HeaderID], what was
// sent twice. One that is being handled at this moment is released and
// comes back, uncounted, a tenth of a second later.
//
// It is a convenience and no guarantee: the memory is of this process, bounded, and
// gone at the next start. Where an effect must not happen twice use middleware/mutex,
// or an inbox.
func Dedupe(cfg DedupeConfig) longshore.Middleware {
	if cfg.Size <= 0 {
		cfg.Size = dedupeSize
	}
	if cfg.For <= 0 {
		cfg.For = dedupeFor
	}
	if cfg.ID == nil {
		cfg.ID = longshore.Identity
	}
	cfg.Logger = logs.OrStderr(cfg.Logger, zapcore.WarnLevel)
	return &deduper{cfg: cfg, done: map[string]time.Time{}, running: map[string]struct{}{}}
}

type deduper struct {
	cfg DedupeConfig

	mu      sync.Mutex
	done    map[string]time.Time // when it is to be forgotten
	order   []string             // of done, oldest first, from at on
	at      int
	running map[string]struct{}

	anonymous sync.Once // the first message without an id
}

func (*deduper) Name() string { return nameDedupe }

// Check refuses manual settling: there the return of the handler says nothing, and what
// is a copy would be settled by no one.
func (*deduper) Check(_ context.Context, f longshore.Facts) error {
	if !f.Manual {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeConfig, Op: "middleware dedupe in a container with manual settling", Source: f.Container,
		Err: errors.New("the handler's return does not say that the message is done"), Hint: "use container.SettleAuto, or leave the middleware out"}
}

func (u *deduper) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		id := u.id(d)
		if done, err := u.begin(id); done || err != nil {
			return err
		}
		ok := false
		defer func() { u.end(id, ok) }() // after a panic too
		err := next.Handle(ctx, d)
		ok = err == nil
		return err
	})
}

func (u *deduper) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		var begun []string
		check := func(d *longshore.Delivery) (bool, error) {
			id := u.id(d)
			done, err := u.begin(id)
			if !done && err == nil {
				begun = append(begun, id)
			}
			return done, err
		}
		failed := map[int]bool{}
		ok := false
		defer func() {
			for i, id := range begun {
				u.end(id, ok && !failed[i])
			}
		}()
		return without(ctx, ds, check, longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
			err := next.HandleBatch(ctx, ds)
			index := make([]int, len(ds))
			for i := range index {
				index[i] = i
			}
			for i := range spread(err, index) {
				failed[i] = true
			}
			ok = true
			return err
		}))
	})
}

// id is empty for a message that cannot be recognised. That is logged once: without ids
// the middleware does nothing, and nothing else would show it.
func (u *deduper) id(d *longshore.Delivery) string {
	id := u.cfg.ID(d)
	if id == "" {
		u.anonymous.Do(func() {
			u.cfg.Logger.Warn("message without an id: dedupe does nothing for such messages", zap.String("source", d.Origin.Source()),
				zap.String("help", "let the producer set Message.ID or the header "+longshore.HeaderID+", or set DedupeConfig.ID"))
		})
	}
	return id
}

var errRunning = errors.New("another delivery of this message is being handled")

// begin reports whether a message is done, or notes that it runs.
func (u *deduper) begin(id string) (done bool, err error) {
	if id == "" {
		return false, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if until, ok := u.done[id]; ok && time.Now().Before(until) {
		return true, nil
	}
	if _, ok := u.running[id]; ok {
		return false, longshore.Release(errRunning, dedupeAgain)
	}
	u.running[id] = struct{}{}
	return false, nil
}

func (u *deduper) end(id string, ok bool) {
	if id == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.running, id)
	if !ok {
		return
	}
	if _, known := u.done[id]; !known {
		u.order = append(u.order, id)
	}
	u.done[id] = time.Now().Add(u.cfg.For)
	u.forget()
}

// forget drops ids beyond the size or the age. The caller holds mu.
func (u *deduper) forget() {
	now := time.Now()
	for u.at < len(u.order) {
		id := u.order[u.at]
		if len(u.done) <= u.cfg.Size && now.Before(u.done[id]) {
			break
		}
		delete(u.done, id)
		u.order[u.at] = ""
		u.at++
	}
	if u.at > len(u.order)/2 {
		u.order = append(u.order[:0], u.order[u.at:]...)
		u.at = 0
	}
}
