package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
)

// Config is one route.
type Config struct {
	// Name names the route, its container ("bridge:NAME") and what it logs. Zero: the
	// source's name.
	Name string
	// From is the place that is emptied.
	From transport.Source
	// To is the place that is filled; it must be a [transport.Outlet], as every queue, topic and
	// group of the built-in transports is. Nothing is consumed from it.
	To transport.Source
	// Identity finds the identity that the message keeps. nil: the header longshore-id, the
	// broker's own id (Kafka, SQS) together with the place it comes from, or the producer's
	// message id. [longshore.Identity] is a rule as well, without the place: for one inbox on
	// both sides while messages without an id of their own are in two hands.
	Identity IdentityRule
	// Park is where messages go that the target refuses for good, on the source's broker.
	// Zero: the source's name with ".parked", on SQS with "-parked" (see [Beside]).
	Park string
	// DeadLetterPlace is where the service's own dead letters are, on the source's broker:
	// Route.Remaining counts them too. Zero: none. Move them with a route of their own.
	DeadLetterPlace string
	// Ledger records what was moved; it may serve several routes, and routes in opposite
	// directions should share one. nil: none, so nothing can be verified, and a key is not
	// held back behind a parked message.
	Ledger *Ledger
	// DeadLetters says that the messages are dead letters: their expiration is not applied
	// again at the target.
	DeadLetters bool
	// OnUnsendable is what happens to a message that the target refuses for good. Zero: Park.
	OnUnsendable Unsendables
	// Rate is how many messages a second are forwarded at the most. Zero: no limit. It can be
	// changed while the route runs, as any container's throttle.
	Rate float64
	// UntilEmpty makes the route end once its source has been empty for so long: nothing ready,
	// unsettled or delayed, and for no shorter time than the broker's counts may be behind
	// (transport.Remaining.Lag: RabbitMQ 10 s with its management API, SQS 1 min). Zero: it runs
	// until it is stopped.
	UntilEmpty time.Duration
	// Return makes the route take messages back that an earlier route has forwarded: the last
	// place is taken off their list instead of stopping them as a loop, and they keep their
	// identities. With a Kafka group as source it begins at the group's committed positions, and
	// skips what the group has done above them.
	Return bool
	// Share lets several instances of the route take messages of one ordered RabbitMQ queue at a
	// time, which keeps no order among them. Zero: one is active, the others stand by and take
	// over within seconds. Instances on Kafka and SQS always share the work.
	Share bool
	// Alone refuses to start while the source has consumers, and on Kafka stops the route when
	// another one joins the group.
	Alone bool
	// Guard is asked every 5 s while the route runs; its error stops the route. nil: none.
	Guard func(ctx context.Context) error
	// Container tunes the container: workers, window, throttle, logger, clock. Its Name and
	// DeadLetter are the route's. Zero Workers: 1 to 64. nil Order: by key.
	Container container.Config
	// OpenFor is how long the intake stops when the target fails, before it is probed; doubled
	// up to a minute. Zero: 1 s.
	OpenFor time.Duration
}

// Unsendables is what a route does with messages that the target refuses for good.
type Unsendables uint8

// The ways.
const (
	Park      Unsendables = iota // move them to Config.Park
	StopRoute                    // stop the route and leave them at the source
)

// Route moves messages from one place to another, each acknowledged at the source once the
// target has confirmed it. It is a component of package lifecycle. All methods are safe for
// concurrent use.
type Route struct {
	name        string
	f           *forwarder
	c           *container.ListenerContainer
	from        transport.Source // for counting what remains there
	out         transport.Outlet
	target      longshore.Capabilities // of out's broker
	park        string                 // name of the parking place
	deadLetters string                 // Config.DeadLetterPlace
	watch       *watch
	locked      bool        // one instance at a time: the source has a lock
	standby     atomic.Bool // another instance has it
	alone       bool        // Config.Alone
	refused     chan *StoppedError

	mu     sync.Mutex
	pub    *batches           // open between Start and Stop
	giveUp context.CancelFunc // ends what is on its way to the target
	cur    *running           // the run that goes on or was the last; nil before Start
	ready  chan struct{}      // what Done returns before the first Start
}

// running is one run of a route, from Start to its end.
type running struct {
	cancel context.CancelFunc // ends the watch
	over   chan struct{}      // closed when the run has ended
	err    error              // why it ended by itself; read after over is closed
}

// defaultAttempts is how often a message is sent to a target that refuses it and may be full.
const defaultAttempts = 5

// New checks the configuration and returns a route. It does no I/O. Errors:
// [longshore.CodeConfig], with all that is wrong.
func New(cfg Config) (*Route, error) {
	from, errFrom := place("From", cfg.From)
	to, errTo := place("To", cfg.To)
	out, ok := cfg.To.(transport.Outlet)
	err := errors.Join(errFrom, errTo)
	if err == nil && !ok {
		err = bad("To", "it has no publisher", "use a queue, topic or group of a broker that can publish")
	}
	if err == nil && token(from) == token(to) {
		err = bad("To", fmt.Sprintf("it is the same place as From: %s %q at %s", from.Transport, from.Name, from.Address), "name another queue, topic, vhost or broker")
	}
	if err != nil {
		return nil, err
	}
	if cfg.Name == "" {
		cfg.Name = from.Name
	}
	if cfg.Identity == nil {
		cfg.Identity = at(hashOf(token(from)))
	}
	f := &forwarder{name: cfg.Name, from: token(from), to: token(to), fromID: hashOf(token(from)), toID: hashOf(token(to)),
		identity: cfg.Identity, deadLetters: cfg.DeadLetters, attempts: cmp.Or(cfg.Container.Redelivery.MaxAttempts, defaultAttempts), now: time.Now,
		ordered: cfg.From.Capabilities().Ordering != longshore.OrderNone, log: cfg.From.Capabilities().Partitions, returns: cfg.Return,
		keeps: from.Transport != "rabbitmq"}
	if cfg.Container.Clock != nil {
		f.now = cfg.Container.Clock.Now
	}
	if cfg.Ledger != nil {
		f.ledger = cfg.Ledger.l
	}
	r := &Route{name: cfg.Name, f: f, from: cfg.From, out: out, target: cfg.To.Capabilities(), park: cmp.Or(cfg.Park, Beside(from, "parked")), deadLetters: cfg.DeadLetterPlace,
		alone: cfg.Alone, refused: make(chan *StoppedError, 1), ready: make(chan struct{})}
	if cfg.OnUnsendable == StopRoute {
		f.stop = r.refused
	}
	if l, ok := cfg.From.(transport.Locker); ok && !cfg.Share && f.ordered && !f.log {
		cfg.From, r.locked = l.Locked("longshore.bridge."+cfg.Name), true
	}
	if r.c, err = r.newContainer(&cfg); err != nil {
		return nil, err
	}
	r.watch = &watch{alone: cfg.Alone, guard: cfg.Guard, ending: ending{quiet: cfg.UntilEmpty},
		sides: []*incarnation{{src: r.from, gone: SourceGone, other: SourceRecreated}, {src: cfg.To, gone: TargetGone, other: TargetRecreated}},
		r:     &view{from: r.from, now: f.now, stats: r.Stats, busy: r.busy, refused: r.refused, ended: r.c.Done}}
	return r, nil
}

// newContainer makes the container that receives. Around the handler stands a breaker, so that
// an outage of the target stops the intake and costs no message an attempt.
func (r *Route) newContainer(cfg *Config) (*container.ListenerContainer, error) {
	guard := breaker.Config{Name: "target of " + cfg.Name, OpenFor: cfg.OpenFor, Logger: cfg.Container.Logger}
	if guard.OpenFor == 0 {
		guard.OpenFor = time.Second
	}
	if p, ok := cfg.To.(transport.Prober); ok {
		guard.Probe = r.f.failing.probing(p)
	}
	b, err := breaker.New(guard)
	if err != nil {
		return nil, err
	}
	own := cfg.Container
	own.Name = "bridge:" + cfg.Name
	own.DeadLetter = container.DeadLetter{To: r.park}
	own.Redelivery.MaxAttempts = r.f.attempts
	own.Middleware = append(own.Middleware[:len(own.Middleware):len(own.Middleware)], b)
	if own.Workers == (container.Workers{}) {
		own.Workers = container.Workers{Min: 1, Max: 64}
	}
	if own.Order == nil {
		own.Order = container.ByKey
	}
	switch {
	case cfg.Rate > 0 && own.Throttle != nil:
		return nil, bad("Rate", "Container.Throttle is set too", "set one of them")
	case cfg.Rate < 0:
		return nil, bad("Rate", fmt.Sprintf("it is %v", cfg.Rate), "set how many messages a second are forwarded at the most, or 0 for no limit")
	case cfg.Rate > 0:
		own.Throttle = throttle.NewRate(cfg.Rate)
	case own.Throttle == nil:
		own.Throttle = throttle.NewUnlimited() // for operators
	}
	if r.locked {
		own.OnEvent = r.notesStandby(own.OnEvent)
		if own.Reopen == (container.Backoff{}) {
			own.Reopen = container.Backoff{Initial: 250 * time.Millisecond, Max: takeOver}
		}
	}
	return container.New(cfg.From, r.f, own)
}

// takeOver is how long an instance that stands by waits before it tries to get the lock.
const takeOver = 2 * time.Second

// notesStandby notes whether another instance has the lock, and passes the events on.
func (r *Route) notesStandby(next func(container.Event)) func(container.Event) {
	return func(e container.Event) {
		switch e.Kind { //nolint:exhaustive // the others say nothing of the lock
		case container.EventDown:
			// With messages in hand the lock is still held by this route's previous subscription.
			r.standby.Store(errors.Is(e.Err, longshore.CodeExclusive) && !r.busy())
		case container.EventSubscribed:
			r.standby.Store(false)
		}
		if next != nil {
			next(e)
		}
	}
}

// Beside names a place next to a queue or topic: "orders" and "parked" are "orders.parked", on SQS
// "orders-parked" and "orders-parked.fifo", since a name there has no dots and a FIFO queue's dead
// letters go to a FIFO queue.
func Beside(place transport.Description, word string) string {
	if place.Transport != "aws_sqs" {
		return place.Name + "." + word
	}
	name, fifo := strings.CutSuffix(place.Name, ".fifo")
	if name += "-" + word; fifo {
		name += ".fifo"
	}
	return name
}

// place describes one end.
func place(field string, s transport.Source) (transport.Description, error) {
	if s == nil {
		return transport.Description{}, bad(field, "it is nil", "set the source or the target of the route")
	}
	d, ok := s.(transport.Describer)
	if !ok {
		return transport.Description{}, bad(field, "it does not describe itself (transport.Describer), so loops could not be seen", "use a source of a built-in transport, or add Describe to yours")
	}
	return d.Describe(), nil
}

func bad(field, what, hint string) error {
	return &longshore.Error{Code: longshore.CodeConfig, Op: "make a bridge route: Config." + field, Err: errors.New(what), Hint: hint}
}

func hashOf(token string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(token)) // never fails
	return h.Sum64()
}

// Name is the name of the route's container.
func (r *Route) Name() string { return r.c.Name() }

// Container is what receives: to pause, scale, throttle and watch the route.
func (r *Route) Container() *container.ListenerContainer { return r.c }

// Start opens a publisher at the target and starts to move messages. It also returns
// while another instance has the lock and this one stands by. Without a target it fails with
// [TargetMissing].
func (r *Route) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cur != nil && r.pub != nil {
		return r.c.Start(ctx)
	}
	if err := r.unattended(ctx); err != nil {
		return err
	}
	if err := r.targetExists(ctx); err != nil {
		return err
	}
	pub, dest, err := r.out.Publisher(ctx)
	if err != nil {
		return fmt.Errorf("open the target of route %q: %w", r.name, err)
	}
	select {
	case old := <-r.refused: // of an earlier run, which had several reasons to stop
		_ = old
	default:
	}
	publishing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	to := newBatches(publishing, pub, dest, r.target)
	r.f.target.Store(to)
	r.f.failing.clear() // what failed in an earlier run
	if err := r.c.Start(ctx); err != nil {
		giveUp()
		return errors.Join(err, to.close(ctx))
	}
	r.pub, r.giveUp = to, giveUp
	watched, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &running{cancel: cancel, over: r.ready}
	if r.cur != nil {
		one.over = make(chan struct{})
	}
	r.cur = one
	go r.end(watched, one)
	return nil
}

// unattended refuses to start beside other consumers where Config.Alone says so.
func (r *Route) unattended(ctx context.Context) error {
	if !r.alone {
		return nil
	}
	left, err := remainingAt(ctx, r.from)
	if err == nil && left.Consumers > 0 {
		why := &StoppedError{Route: r.name, Reason: OtherConsumers, Err: fmt.Errorf("the source has %d consumers", left.Consumers)}
		err = why.typed()
	}
	return err
}

// targetExists refuses to start without a target, or with credentials that it refuses: no message
// could be moved. An unreachable target is waited for.
func (r *Route) targetExists(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	switch _, err := identify(ctx, r.out); longshore.CodeOf(err) {
	case longshore.CodeNotFound:
		return (&StoppedError{Route: r.name, Reason: TargetMissing, Err: err}).typed()
	case longshore.CodeAuth:
		return err
	default:
		return nil
	}
}

// end watches a run, and ends it if it is finished or must stop.
func (r *Route) end(ctx context.Context, one *running) {
	defer close(one.over)
	defer one.cancel()
	why, finished := r.watch.run(ctx)
	if why == nil && !finished {
		return // Stop does the rest
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.StopBudget())
	defer cancel()
	err := r.shut(stop)
	if why != nil {
		why.Route = r.name
		err = errors.Join(why.typed(), err)
	}
	one.err = err
}

// goneTarget is how long the publisher of a deleted target may take to close.
const goneTarget = time.Second

// shut drains and closes. Where the target has been deleted a drain would wait in vain for its
// confirmations, so what is on its way goes back to the source at once.
func (r *Route) shut(ctx context.Context) error {
	r.mu.Lock()
	giveUp, open := r.giveUp, r.pub != nil
	r.mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, lookTimeout)
	var asked sync.WaitGroup
	gone := false
	if open {
		asked.Go(func() {
			if gone = missing(asking, r.out); gone {
				giveUp()
			}
		})
	}
	err := r.c.Stop(ctx)
	cancel()
	asked.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pub == nil {
		return err
	}
	r.giveUp() // the container has stopped: what is still on its way goes back to the source
	if gone {
		ctx, cancel = context.WithTimeout(ctx, goneTarget)
		defer cancel()
	}
	closed := r.pub.close(ctx)
	r.pub = nil
	if gone {
		return err // no message waits for the publisher any more
	}
	return errors.Join(err, closed)
}

// Stop drains: what was received is confirmed by the target and acknowledged, or goes back.
func (r *Route) Stop(ctx context.Context) error {
	r.mu.Lock()
	one := r.cur
	r.mu.Unlock()
	if one != nil {
		one.cancel()
		<-one.over
	}
	return r.shut(ctx)
}

// Done returns a channel that is closed when the route has ended: finished, stopped by itself,
// or stopped by Stop.
func (r *Route) Done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cur == nil {
		return r.ready
	}
	return r.cur.over
}

// Err is why the route stopped by itself: a [StoppedError] in it says what differs. nil while it
// runs, when it is finished, and after Stop.
func (r *Route) Err() error {
	select {
	case <-r.Done():
	default:
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cur.err
}

// Run starts the route and returns when it is finished, has stopped by itself or ctx has ended;
// then it drains. Errors: those of Start, Err and Stop.
func (r *Route) Run(ctx context.Context) error {
	if err := r.Start(ctx); err != nil {
		return err
	}
	select {
	case <-r.Done():
		return r.Err()
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.StopBudget())
	defer cancel()
	return r.Stop(stop)
}

// busy: the container holds messages.
func (r *Route) busy() bool {
	s := r.c.Stats()
	return s.InFlight+s.Parked+s.Buffered > 0
}

// Progress is how far the route has come. It asks no broker: the counts of the source are read
// every 5 s while the route runs, those of the route are of now.
func (r *Route) Progress() Progress {
	p := r.watch.last()
	p.Stats, p.Standby = r.Stats(), r.standby.Load()
	p.Moved, p.Age = p.Stats.moved(), p.Stats.Age
	if p.Known >= 0 {
		p.Known = max(p.Known, p.Moved)
	}
	s := r.c.Stats()
	p.Limit, p.Why, p.Failing = limit(&s, p.Lag), s.Bottleneck.Text, r.f.failing.text(s.Bottleneck)
	return p
}

// StopBudget is how long Stop may take.
func (r *Route) StopBudget() time.Duration { return r.c.StopBudget() + time.Second }

// DrainReport says how the last Stop went.
func (r *Route) DrainReport() string { return r.c.DrainReport() }

// Stats are counts since the route was made.
type Stats struct {
	Forwarded int64         // messages that the target confirmed, copies included
	Bytes     int64         // of their bodies
	Looped    int64         // dropped, because they came from the target
	Skipped   int64         // received again after a crash, and not published again
	Parked    int64         // set aside on the source's broker
	Renamed   int64         // given a new identity, because their headers belong to another message
	Anonymous int64         // forwarded without an identity: copies of them cannot be recognised
	Age       time.Duration // of the message forwarded last: now minus its publish time; 0 = unknown
}

// Stats returns the counts.
func (r *Route) Stats() Stats {
	n := &r.f.count
	return Stats{Forwarded: n.forwarded.Load(), Bytes: n.bytes.Load(), Looped: n.looped.Load(), Skipped: n.skipped.Load(), Parked: n.parked.Load(),
		Renamed: n.renamed.Load(), Anonymous: n.anonymous.Load(), Age: time.Duration(n.age.Load())}
}
