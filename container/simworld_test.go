package container_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// The world of the simulation of a whole container: a memory broker, one container, and
// what is known of each message. The seed draws the configuration and, for each message,
// what its handler does; a step is a verb and a fault with two numbers, which mean the
// same whatever came before, so that any part of a history is a history too.

const (
	simAttempts = 3
	simPermits  = 4 // of a throttle that is open
	simLatency  = 8 * time.Millisecond
)

// simSource is the broker's queue. It keeps the observer of the newest consumer, by which
// the simulation reports that a partition leaves, as a rebalance would.
type simSource struct {
	transport.Source
	b   *memory.Broker
	mu  sync.Mutex
	obs transport.Observer // nil: never opened

	failing int // calls of Pause, Resume and Resize that are still to fail
}

// simConsumer is the broker's consumer, with calls that fail.
type simConsumer struct {
	simAbilities
	src *simSource
}

// simAbilities is everything that a consumer of package memory can do.
type simAbilities interface {
	transport.Consumer
	transport.Pauser
	transport.Resizer
	transport.Backlogger
	transport.Bufferer
	transport.CapabilityReporter
}

func (c *simConsumer) Pause(ctx context.Context) error {
	return c.src.try(func() error { return c.simAbilities.Pause(ctx) })
}

func (c *simConsumer) Resume(ctx context.Context) error {
	return c.src.try(func() error { return c.simAbilities.Resume(ctx) })
}

func (c *simConsumer) Resize(ctx context.Context, window int) error {
	return c.src.try(func() error { return c.simAbilities.Resize(ctx, window) })
}

// try makes a call, or fails it: every other one after it has been carried out.
func (s *simSource) try(call func() error) error {
	s.mu.Lock()
	left := s.failing
	s.failing = max(left-1, 0)
	s.mu.Unlock()
	if left%2 == 1 {
		return errSimRefused
	}
	if err := call(); err != nil || left == 0 {
		return err
	}
	return errSimRefused
}

// fail makes the next n calls fail; 0: none any more.
func (s *simSource) fail(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = n
}

func (s *simSource) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.obs = o.Observer
	s.mu.Unlock()
	all, ok := c.(simAbilities)
	if !ok {
		return nil, errors.New("the consumer of package memory has lost an ability")
	}
	return &simConsumer{all, s}, nil
}

func (s *simSource) Publisher(context.Context) (transport.Publisher, string, error) {
	p, err := s.b.Publisher(memory.PublisherConfig{})
	return p, "q", err
}

// simBreaker is a breaker that says at once whether it holds.
type simBreaker struct{ *breaker }

func (k simBreaker) Watch(changed func(held bool, reason string)) func() {
	stop := k.breaker.Watch(changed)
	k.mu.Lock()
	open := k.open
	k.mu.Unlock()
	if open {
		changed(true, "payment is down")
	}
	return stop
}

// simMessage is what is known of one message.
type simMessage struct {
	no  int
	key string

	first    time.Time // when something was done with it first
	runs     int       // handler calls that began
	done     int       // that returned nil
	ended    bool      // handled to an end once, so that its followers may start
	endFrom  time.Time // when the call began that ended it
	dies     bool      // it may be in the dead-letter destination
	givenUp  bool      // an operator dead-lettered it
	hurried  bool      // an operator retried or released it
	released bool      // an operator released it, so that it comes again
	notYet   time.Time // its next attempt, by the handler's own word
	said     time.Time // when that was said
}

type simWorld struct {
	seed  uint64
	seen  *simCoverage
	cfg   container.Config
	queue memory.QueueConfig
	batch bool
	b     *memory.Broker
	src   *simSource
	c     *container.ListenerContainer
	pub   transport.Publisher
	gate  *gate    // nil: no throttle
	hold  *breaker // nil: no middleware

	stopping chan struct{} // closed when the stop that goes on has returned; nil: none does
	started  bool
	paused   bool
	held     bool
	permits  int
	slow     int       // calls of the transport that are slow
	fastFrom time.Time // when they became fast again; one that was slow may still be on its way
	idleFrom time.Time // since when work may not start; zero: it may
	taken    int       // messages with the consumer, when that was looked at last; negative: not known
	armed    bool      // settlements will fail

	mu       sync.Mutex
	msgs     []*simMessage
	byKey    map[string][]*simMessage
	running  map[string]int       // calls by key
	lastCall map[string]time.Time // when the last one of each key began
	calls    int                  // that run
	hung     int                  // that wait for unhang
	unhang   chan struct{}
	breaks   time.Time // the last moment at which a delivery could be lost
	faults   int       // how often the broker took something back
	left     map[int32]time.Time
	noStart  bool
	pausedAt time.Time
	workers  container.Workers
	axes     state.Axes
	states   []string
	wrong    error
	trace    []string // what happened, and when; only where one is asked for
	tracing  bool
	began    time.Time
}

func newSimWorld(seed uint64, seen *simCoverage) (*simWorld, error) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	one := func(of int) bool { return rnd.IntN(of) == 0 }
	w := &simWorld{seed: seed, seen: seen, byKey: map[string][]*simMessage{}, running: map[string]int{}, lastCall: map[string]time.Time{}, unhang: make(chan struct{}),
		left: map[int32]time.Time{}, permits: simPermits, taken: -1, began: time.Now()}
	w.queue = memory.QueueConfig{CountsReturns: one(3), SingleActive: one(4), Pull: one(3)}
	if one(3) {
		w.queue.Partitions = 3
	}
	if one(5) {
		w.queue.Lease = 4 * time.Second
		if w.queue.SingleActive = !one(3); one(4) {
			w.queue.KeepLease, w.queue.MaxLease = true, 8*time.Second
		}
	}
	if one(3) {
		w.queue.SettleLinger = time.Duration(rnd.IntN(20)) * time.Millisecond
	}
	w.workers = container.Workers{Min: 1 + rnd.IntN(3), Max: 4 + rnd.IntN(5)}
	w.cfg = quiet(container.Config{
		Workers: w.workers, Order: container.Unordered,
		Redelivery:   container.Redelivery{MaxAttempts: simAttempts, Backoff: container.Backoff{Initial: 20 * time.Millisecond, Max: 3 * time.Second}},
		DeadLetter:   container.DeadLetter{To: "dead"},
		DrainTimeout: time.Duration(1+rnd.IntN(400)) * time.Millisecond,
		CancelGrace:  time.Duration(100+rnd.IntN(400)) * time.Millisecond,
		Reopen:       container.Backoff{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		StartPaused:  one(5),
		OnEvent:      w.event,
	})
	if !one(3) {
		w.cfg.Order = container.ByKey
		if w.queue.Lease > 0 { // a retry waits here and must come before its lease ends
			w.cfg.Redelivery.Backoff.Max = w.queue.Lease / 2
		}
	}
	if one(4) {
		w.cfg.Lookahead = -1
	}
	if one(2) {
		w.gate = newGate(simPermits, 0)
		w.cfg.Throttle = w.gate
	}
	if one(4) {
		w.cfg.Settle = container.SettleManual
	}
	if one(5) {
		w.cfg.DeadLetter = container.DeadLetter{Policy: container.DeadLetterKeep}
	}
	if one(3) {
		w.cfg.Stuck = container.Stuck{After: 500 * time.Millisecond, Action: container.StuckAction(rnd.IntN(2))}
	}
	w.batch = w.cfg.Settle == container.SettleAuto && one(5)
	w.queue.FIFO = w.queue.Lease > 0 && w.cfg.Order == container.Order(container.ByKey) && one(2) // as on SQS: one of a key at a time
	w.b = memory.New(memory.Config{})
	w.src = &simSource{Source: w.b.Queue("q", w.queue), b: w.b}
	var err error
	if w.pub, err = w.b.Publisher(memory.PublisherConfig{}); err != nil {
		return nil, err
	}
	if w.batch {
		w.cfg.Batch = container.Batch{Size: 1 + rnd.IntN(5), Linger: 5 * time.Millisecond}
		w.c, err = container.NewBatch(w.src, w.handleBatch, w.cfg)
	} else {
		w.hold = &breaker{}
		w.cfg.Middleware = []longshore.Middleware{simBreaker{w.hold}}
		w.c, err = container.New(w.src, longshore.HandlerFunc(w.handle), w.cfg)
	}
	w.paused = w.cfg.StartPaused
	return w, err
}

func (w *simWorld) bad(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.badLocked(format, args...)
}

func (w *simWorld) badLocked(format string, args ...any) {
	if w.wrong == nil {
		w.wrong = fmt.Errorf(format, args...)
	}
}

// note adds to the trace. The lock is held.
func (w *simWorld) note(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%10v ", time.Since(w.began))+fmt.Sprintf(format, args...))
	}
}

// broke notes that deliveries may be lost now: they come again for a reason.
func (w *simWorld) broke() {
	w.mu.Lock()
	w.breaks = time.Now()
	w.faults++
	w.mu.Unlock()
}

// brokeSince says whether the broker took something back after so many times.
func (w *simWorld) brokeSince(faults int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults != faults
}

func (w *simWorld) event(e container.Event) {
	w.sample()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("event %s %s", e.Kind, e.Text)
	if e.Kind != container.EventState {
		return
	}
	if n := len(w.states); n > 0 {
		w.seen.hit("state "+w.states[n-1], e.Text)
	}
	w.states = append(w.states, e.Text)
}

// sample notes how the container moved on its three axes since the last look.
func (w *simWorld) sample() {
	now, ok := container.AxesOf(w.c)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.axes
	w.axes = now
	if now.Stop < was.Stop { // another run
		was = state.Axes{}
	}
	if now.Sub != was.Sub {
		w.seen.hit("subscription "+was.Sub.String(), now.Sub.String())
	}
	if now.Stop != was.Stop {
		w.seen.hit("stop "+was.Stop.String(), now.Stop.String())
	}
	for _, h := range []state.Holds{state.Operator, state.Middleware, state.Throttle} {
		if now.Holds.Has(h) != was.Holds.Has(h) {
			w.seen.hit(fmt.Sprintf("hold %v", h), map[bool]string{true: "on", false: "off"}[now.Holds.Has(h)])
		}
	}
	if now.Stop == state.NoStop && now.Sub == state.Open && now.Holds != state.None {
		w.seen.hit("open and held by", now.Holds.String())
	}
}

// outcome is what the n-th handler call of a message does: drawn from the seed, so that it
// does not depend on what runs beside it.
func (w *simWorld) outcome(m *simMessage, n int) (kind int, d time.Duration) {
	rnd := rand.New(rand.NewPCG(w.seed, uint64(m.no)<<16|uint64(n)))
	kind = rnd.IntN(26)
	if n > 6 { // it ends at some time
		kind = 25
	}
	return kind, time.Duration(1+rnd.IntN(30)) * time.Millisecond
}

func (w *simWorld) handle(ctx context.Context, d *longshore.Delivery) error {
	no, err := strconv.Atoi(string(d.Body))
	if err != nil {
		return err
	}
	w.sample()
	m, n, began := w.begin(d, no)
	err = w.act(ctx, m, n)
	w.end(ctx, d, m, began, err)
	if err == nil && w.cfg.Settle == container.SettleManual {
		_ = d.Ack(ctx) // its lane goes on from here; if it was lost it comes again
	}
	return err
}

func (w *simWorld) handleBatch(ctx context.Context, ds []*longshore.Delivery) error {
	failed := longshore.BatchError{}
	for i, d := range ds {
		if err := w.handle(ctx, d); err != nil {
			failed[i] = err
		}
	}
	return failed
}

// act does what handlers do.
func (w *simWorld) act(ctx context.Context, m *simMessage, n int) (err error) {
	kind, d := w.outcome(m, n)
	switch kind {
	case 0, 1:
		return errors.New("failed")
	case 2:
		defer func() { // begin and end must pair up
			if p := recover(); p != nil {
				err = fmt.Errorf("%v", p)
			}
		}()
		panic("a handler's panic")
	case 3, 4:
		return longshore.Retry(errors.New("busy"), d*8)
	case 5:
		return longshore.Release(errors.New("not me"), d)
	case 6:
		return longshore.Reject(errors.New("never"))
	case 7, 8:
		wait(d * 30) // perhaps longer than the drain, whatever the context says
		return nil
	case 9, 10:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d * 20):
			return nil
		}
	case 11:
		return w.hang(ctx)
	case 12:
		return longshore.Retry(errors.New("busy for longer"), d*60)
	}
	wait(d / 4)
	return nil
}

// hang waits until the hanging handlers are let go, unless they hold all workers.
func (w *simWorld) hang(ctx context.Context) error {
	w.mu.Lock()
	if w.hung >= w.workers.Max-2 {
		w.mu.Unlock()
		return nil
	}
	w.hung++
	unhang := w.unhang
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.hung--
		w.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-unhang:
		return nil
	}
}

// simStep is one step of a history.
type simStep struct {
	verb, fault uint8
	a, b        uint16
}

// simHistory draws the steps of one seed.
func simHistory(seed uint64) []simStep {
	rnd := rand.New(rand.NewPCG(seed, 13))
	var verbs, faults []uint8
	for i, v := range simVerbs {
		for range v.odds {
			verbs = append(verbs, uint8(i))
		}
	}
	for i, f := range simFaults {
		for range f.odds {
			faults = append(faults, uint8(i))
		}
	}
	steps := make([]simStep, 12+rnd.IntN(50))
	for i := range steps {
		steps[i] = simStep{verbs[rnd.IntN(len(verbs))], faults[rnd.IntN(len(faults))], uint16(rnd.Uint32()), uint16(rnd.Uint32())}
	}
	return steps
}

// apply does one step, lets time pass and looks at everything.
func (w *simWorld) apply(s simStep) error {
	verb, fault := simVerbs[s.verb], simFaults[s.fault]
	w.mu.Lock()
	w.note("%s, %s %d %d", verb.name, fault.name, s.a, s.b)
	w.mu.Unlock()
	var effect bool
	do := func() { effect = verb.do(w, int(s.a), int(s.b)) }
	order := s.b % 3
	if verb.first && s.a%8 > 0 && order == 1 {
		order = 0
	}
	switch order {
	case 0:
		do()
		fault.do(w, int(s.a), int(s.b))
	case 1:
		fault.do(w, int(s.a), int(s.b))
		do()
	default:
		var both sync.WaitGroup
		both.Go(do)
		fault.do(w, int(s.a), int(s.b))
		both.Wait()
	}
	if effect {
		w.seen.hit("verb "+verb.name, fault.name)
	}
	w.sample()
	synctest.Wait()
	w.sample()
	w.pass([]time.Duration{0, time.Millisecond, 5 * time.Millisecond, 40 * time.Millisecond, 300 * time.Millisecond, 4 * time.Second}[s.a%6])
	w.look()
	return w.failure()
}

// pass lets time pass, the first of it in small pieces: what follows a step does so soon.
func (w *simWorld) pass(d time.Duration) {
	for piece := 3 * time.Millisecond; d > 0; piece *= 2 {
		wait(min(d, piece))
		d -= piece
		synctest.Wait()
		w.sample()
	}
}

func (w *simWorld) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong
}
