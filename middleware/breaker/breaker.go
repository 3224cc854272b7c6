package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore/middleware/throttle"
)

// State is what a breaker does.
type State string

// The states.
const (
	Closed State = "closed" // everything goes through
	Open   State = "open"   // nothing does; the containers do not consume
	Trial  State = "trial"  // so many as Trials says, all others wait
)

// ErrOpen is the cause of releases by an open breaker.
var ErrOpen = errors.New("the breaker is open")

// Breaker is a middleware that also holds the intake; see the package. Make one
// with [New].
type Breaker struct {
	cfg   Config
	cb    *gobreaker.TwoStepCircuitBreaker[any]
	force atomic.Bool // the next failure opens

	// mu is never held while gobreaker is called: that calls back with a lock of
	// its own held.
	mu        sync.Mutex
	state     State
	round     atomic.Uint64 // counts changes of the state; written with mu
	probing   bool          // a trial by Probe: the containers stay held
	reason    string
	counts    gobreaker.Counts // of the last failure
	tries     int              // openings in a row
	since     time.Time
	until     time.Time     // open: when the trial is
	openedFor time.Duration // last time, as meant
	suspects  suspects
	moved     chan struct{} // closed and replaced when those who wait are to look again
	timer     *time.Timer
	ramp      *throttle.Limiter // nil: no ramp
	step      *time.Timer

	// tellMu orders what watchers hear. It is taken before mu.
	tellMu   sync.Mutex
	watchers map[int]*watcher
	watched  int
	probes   sync.WaitGroup
	life     context.Context //nolint:containedctx // of probes; ends when the last watcher goes
	end      context.CancelFunc
}

// New makes a breaker. The error joins everything that is wrong with cfg.
func New(cfg Config) (*Breaker, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	b := &Breaker{cfg: cfg, state: Closed, since: time.Now(), moved: make(chan struct{}), watchers: map[int]*watcher{}}
	b.cb = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Name:        cfg.Name,
		MaxRequests: uint32(min(cfg.Trials, 1<<30)), //nolint:gosec // bounded
		Interval:    cfg.Window, BucketPeriod: max(cfg.Window/10, 1),
		Timeout:     max(cfg.OpenFor/2, 1), // the times are ours, and longer: gobreaker has only one, and does not report its end
		ReadyToTrip: b.trips, OnStateChange: b.changed,
		IsSuccessful: func(err error) bool { return b.judge(err) != failed },
		IsExcluded:   func(err error) bool { return b.judge(err) == excluded },
	})
	return b, nil
}

// Name returns "breaker".
func (b *Breaker) Name() string { return "breaker" }

// trips decides after a failure. gobreaker calls it with its lock held.
func (b *Breaker) trips(c gobreaker.Counts) bool {
	b.mu.Lock()
	b.counts = c
	b.mu.Unlock()
	done := c.TotalSuccesses + c.TotalFailures
	return b.force.Swap(false) ||
		b.cfg.Consecutive > 0 && int(c.ConsecutiveFailures) >= b.cfg.Consecutive ||
		int(done) >= b.cfg.MinRequests && float64(c.TotalFailures) >= b.cfg.Ratio*float64(done)
}

// changed follows gobreaker's state, which calls it with its lock held.
func (b *Breaker) changed(_ string, from, to gobreaker.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = time.Now()
	b.round.Add(1)
	switch to {
	case gobreaker.StateOpen:
		b.opens(from)
	case gobreaker.StateHalfOpen:
		b.state = Trial
		b.suspects.round++
	case gobreaker.StateClosed:
		b.closes()
	}
	b.move()
}

// opens sets the time of the trial. The caller holds mu.
func (b *Breaker) opens(from gobreaker.State) {
	wait := b.cfg.OpenFor
	for range min(b.tries, 40) {
		wait = min(2*wait, b.cfg.OpenMax)
	}
	b.tries++
	b.state, b.probing, b.until, b.openedFor = Open, false, b.since.Add(wait), wait
	if from == gobreaker.StateClosed {
		b.reason = fmt.Sprintf("%s: %d of %d calls failed", b.cfg.Name, b.counts.TotalFailures, b.counts.TotalFailures+b.counts.TotalSuccesses)
	} else {
		b.reason = b.cfg.Name + ": the trial failed"
	}
	b.stopRamp()
	b.arm()
	b.cfg.Logger.Warn("breaker opened", zap.String("breaker", b.cfg.Name), zap.String("reason", b.reason), zap.Duration("retry_in", wait))
}

func (b *Breaker) closes() {
	b.state, b.probing, b.tries, b.reason = Closed, false, 0, ""
	b.startRamp()
	b.cfg.Logger.Warn("breaker closed", zap.String("breaker", b.cfg.Name), zap.Duration("ramp", b.cfg.Ramp))
}

// move lets those who wait look again. The caller holds mu.
func (b *Breaker) move() {
	close(b.moved)
	b.moved = make(chan struct{})
}

// Status is how a breaker stands.
type Status struct {
	Name  string    `json:"name"`
	State State     `json:"state"`
	Since time.Time `json:"since"`
	// Reason says why it is open, Until when the next trial is.
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Permits is how many handlers may run at once after it closed; −1: all.
	Permits int `json:"permits"`
}

// Status returns a snapshot.
func (b *Breaker) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := Status{Name: b.cfg.Name, State: b.state, Since: b.since, Reason: b.reason, Permits: -1}
	if b.state == Open {
		st.Until = b.until
	}
	if b.ramp != nil {
		st.Permits, _ = b.ramp.Limits()
	}
	return st
}
