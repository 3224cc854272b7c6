package throttle

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Fleet lets all instances of a service obey the same control topic: a change is in
// force everywhere within a moment, and who starts later obeys it too. It is a
// component of package lifecycle; several limiters share one.
//
// When the control broker is away, the state in force stays until it expires; then the
// configured values return. Nothing waits for it: Start returns after 3 s at the
// latest, the connection is tried again for ever, and Status says that it is lost.
// The control topic has a connection of its own and is not subject to any throttle,
// pause or breaker.
type Fleet struct {
	*control
	src transport.Source
	out sender

	runMu  sync.Mutex
	cancel context.CancelFunc
	wg     sync.WaitGroup

	wordMu sync.Mutex // held while a word about ourselves is made and queued: they go out in the order of their times
	word   time.Time  // of the last one: receivers drop a word that is not newer, so no two have the same

	linkMu     sync.Mutex
	connected  bool
	since      time.Time
	lastErr    error
	snapshot   chan struct{} // closed when what was in force is known
	echoed     bool          // our own voice came back: what follows was said after we came
	acks       map[string]map[string]bool
	heard      map[string]bool // directives seen since an instance joined
	welcoming  bool
	correcting map[string]bool // targets for which another instance is to be corrected
	issued     map[string]*entry
}

const (
	snapshotWait = 3 * time.Second
	settle       = 400 * time.Millisecond // for others to answer a newcomer
	repeatEvery  = 30 * time.Second
)

// NewFleet prepares the control of limiters through a broadcast source; it does no
// I/O. Errors: CodeConfig, and CodeUnsupported for a source of which each message
// reaches one instance only.
func NewFleet(src transport.Source, cfg FleetConfig) (*Fleet, error) {
	if err := cfg.check(src); err != nil {
		return nil, err
	}
	outlet, ok := src.(transport.Outlet)
	if !ok {
		cfg.ListenOnly = true
	}
	f := &Fleet{control: newControl(cfg), src: src, acks: map[string]map[string]bool{}, heard: map[string]bool{}, issued: map[string]*entry{},
		correcting: map[string]bool{}}
	f.out = sender{outlet: outlet, kick: make(chan struct{}, 1)}
	f.outdated = f.stale
	return f, nil
}

// Name names the component.
func (f *Fleet) Name() string { return "throttle control of " + f.cfg.Scope }

// Phase lets the fleet start before the containers, so that they begin with what is
// in force, and stop after them.
func (f *Fleet) Phase() int { return 200 }

// Instance is how this process is called in the fleet.
func (f *Fleet) Instance() string { return f.cfg.Instance }

// Start reads the control topic from now on. It returns when the state in force is
// obeyed, after 3 s at the latest; with RequireSnapshot it fails then. On a running
// fleet it does nothing.
func (f *Fleet) Start(ctx context.Context) error {
	f.runMu.Lock()
	if f.cancel != nil {
		f.runMu.Unlock()
		return nil
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	f.linkMu.Lock()
	f.snapshot, f.echoed, f.welcoming = make(chan struct{}), false, false
	ready := f.snapshot
	f.linkMu.Unlock()
	f.wg.Go(func() { f.receive(run) })
	f.wg.Go(func() { f.mind(run) })
	f.wg.Go(func() { f.send(run) })
	f.runMu.Unlock()

	limit := time.NewTimer(snapshotWait)
	defer limit.Stop()
	var err error
	select {
	case <-ready:
		return nil
	case <-limit.C:
		err = errors.New("the control topic did not report the limits in force in time")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if !f.cfg.RequireSnapshot && ctx.Err() == nil {
		return nil
	}
	f.linkMu.Lock()
	if f.lastErr != nil {
		err = f.lastErr
	}
	f.linkMu.Unlock()
	_ = f.Stop(context.WithoutCancel(ctx)) // it only says goodbye
	return &longshore.Error{Code: longshore.CodeUnreachable, Op: "start the " + f.Name(), Err: err, Hint: "check the control broker, or leave RequireSnapshot out"}
}

// Stop says goodbye and ends what Start began. The limiters keep the state in force:
// a container that drains is not to open up.
func (f *Fleet) Stop(ctx context.Context) error {
	f.runMu.Lock()
	defer f.runMu.Unlock()
	if f.cancel == nil {
		return nil
	}
	f.cancel()
	f.wg.Wait()
	f.cancel = nil
	f.goodbye(ctx)
	return nil
}

// mind does what has its time: ends of directives, steps of a ramp, signs of life.
func (f *Fleet) mind(ctx context.Context) {
	hello, repeat := time.NewTicker(memberEvery), time.NewTicker(repeatEvery)
	defer hello.Stop()
	defer repeat.Stop()
	for {
		timer := time.NewTimer(time.Hour)
		if t := f.next(f.now()); !t.IsZero() {
			timer.Reset(max(t.Sub(f.now()), 0))
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-hello.C:
			f.sayHello(ctx, false, "")
		case <-repeat.C:
			f.repeat(ctx)
		case <-f.changed:
		case <-timer.C:
			f.pass()
		}
		timer.Stop()
	}
}

// later calls do after d, unless the fleet stops before.
func (f *Fleet) later(ctx context.Context, d time.Duration, do func()) {
	f.wg.Go(func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			do()
		case <-ctx.Done():
		}
	})
}

// around is a moment within d, so that a fleet does not speak all at once.
func around(d time.Duration) time.Duration { return rand.N(d) }
