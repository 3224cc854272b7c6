package throttle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
)

// Poller obeys directives that lie in one shared place and are looked at now and
// then: an object in a bucket, a row, a parameter. It is for services whose only
// broker cannot broadcast, as Amazon SQS. It cannot divide a total: nobody hears
// who lives.
type Poller struct {
	*control
	every time.Duration
	fetch func(ctx context.Context) ([]byte, error)

	runMu  sync.Mutex
	cancel context.CancelFunc
	wg     sync.WaitGroup

	linkMu sync.Mutex
	since  time.Time
	err    error
	ok     bool
}

// NewPoller prepares it. fetch returns one directive as JSON, or an array of
// them, signed where cfg has keys ([Seal] makes one); nothing at all means nothing
// is said. A directive that is not there any more stays in force until it expires or
// one with Unset takes it back: the absence of a value is not a value. every zero: 10 s.
func NewPoller(fetch func(ctx context.Context) ([]byte, error), every time.Duration, cfg FleetConfig) (*Poller, error) {
	cfg.ListenOnly, cfg.Stream = true, true
	var errs []error
	if fetch == nil || every < 0 {
		errs = append(errs, &longshore.Error{Code: longshore.CodeConfig, Op: "poll a fleet's throttles", Err: errors.New("fetch is nil or every is negative")})
	}
	if err := cfg.check(nowhere{}); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if every == 0 {
		every = 10 * time.Second
	}
	return &Poller{control: newControl(cfg), every: every, fetch: fetch}, nil
}

// Name names the component.
func (p *Poller) Name() string { return "throttle polling of " + p.cfg.Scope }

// Phase is that of [Fleet.Phase].
func (p *Poller) Phase() int { return 200 }

// Start looks once, for at most 3 s, and goes on looking. With RequireSnapshot a
// failure of the first look fails it.
func (p *Poller) Start(ctx context.Context) error {
	p.runMu.Lock()
	defer p.runMu.Unlock()
	if p.cancel != nil {
		return nil
	}
	first, done := context.WithTimeout(ctx, snapshotWait)
	err := p.look(first)
	done()
	if err != nil && p.cfg.RequireSnapshot {
		return &longshore.Error{Code: longshore.CodeUnreachable, Op: "start the " + p.Name(), Err: err, Hint: "check where the value lies, or leave RequireSnapshot out"}
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	p.wg.Go(func() { p.mind(run) })
	return nil
}

// Stop ends the looking. The limiters keep the state in force.
func (p *Poller) Stop(context.Context) error {
	p.runMu.Lock()
	defer p.runMu.Unlock()
	if p.cancel != nil {
		p.cancel()
		p.wg.Wait()
		p.cancel = nil
	}
	return nil
}

func (p *Poller) mind(ctx context.Context) {
	look := time.NewTicker(p.every)
	defer look.Stop()
	for {
		timer := time.NewTimer(time.Hour)
		if t := p.next(p.now()); !t.IsZero() {
			timer.Reset(max(t.Sub(p.now()), 0))
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-look.C:
			one, cancel := context.WithTimeout(ctx, max(p.every, time.Second))
			_ = p.look(one) // Status shows the error
			cancel()
		case <-p.changed:
		case <-timer.C:
			p.pass()
		}
		timer.Stop()
	}
}

// look obeys what lies there.
func (p *Poller) look(ctx context.Context) error {
	doc, err := p.fetch(ctx)
	p.linkMu.Lock()
	if ok := err == nil; ok != p.ok || p.since.IsZero() {
		p.ok, p.since = ok, p.now()
	}
	was := p.err
	p.err = err
	p.linkMu.Unlock()
	defer func() {
		p.mu.Lock()
		p.book.settled = err == nil // what the next look finds was put there since
		p.mu.Unlock()
	}()
	if err != nil {
		if was == nil {
			p.tell([]FleetEvent{{Kind: FleetLost, Reason: err.Error()}})
		}
		return err
	}
	if was != nil {
		p.tell([]FleetEvent{{Kind: FleetConnected}})
	}
	var many []json.RawMessage
	if json.Unmarshal(doc, &many) != nil {
		many = []json.RawMessage{bytes.TrimSpace(doc)}
	}
	for _, raw := range many {
		if len(raw) > 0 {
			p.read(ctx, raw, false)
		}
	}
	return nil
}

// Status returns a snapshot.
func (p *Poller) Status() FleetStatus {
	st := p.control.status()
	p.linkMu.Lock()
	defer p.linkMu.Unlock()
	st.Connected, st.Since = p.ok, p.since
	if p.err != nil {
		st.Error = p.err.Error()
	}
	return st
}

// Seal completes a directive as [Fleet.Issue] does, signs it with key (the zero Key
// does not sign) and returns the JSON to put where a [Poller] looks, or to publish by
// other means. The error is CodeConfig.
func Seal(ctx context.Context, scope string, key Key, d Directive) ([]byte, error) {
	cfg := FleetConfig{Scope: scope, Instance: "issuer", Stream: true}
	if !key.Secret.IsZero() {
		cfg.Keys = []Key{key}
	}
	if err := cfg.check(nowhere{}); err != nil {
		return nil, err
	}
	f := &Fleet{control: newControl(cfg)}
	return f.prepare(ctx, &d, time.Now())
}
