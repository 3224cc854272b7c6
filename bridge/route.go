package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/breaker"
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
	// Zero: the source's name with ".parked", on SQS with "-parked".
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
	// Container tunes the container: workers, window, throttle, logger, clock. Its Name and
	// DeadLetter are the route's. Zero Workers: 1 to 64. nil Order: by key.
	Container container.Config
	// OpenFor is how long the intake stops when the target fails, before it is probed; doubled
	// up to a minute. Zero: 1 s.
	OpenFor time.Duration
}

// Route moves messages from one place to another, each acknowledged at the source once the
// target has confirmed it. It is a component of package lifecycle. All methods are safe for
// concurrent use.
type Route struct {
	name        string
	f           *forwarder
	c           *container.ListenerContainer
	from        transport.Source // for counting what remains there
	out         transport.Outlet
	park        string // name of the parking place
	deadLetters string // Config.DeadLetterPlace

	mu  sync.Mutex
	pub transport.Publisher // open between Start and Stop
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
		ordered: cfg.From.Capabilities().Ordering != longshore.OrderNone, log: cfg.From.Capabilities().Partitions}
	if cfg.Container.Clock != nil {
		f.now = cfg.Container.Clock.Now
	}
	if cfg.Ledger != nil {
		f.ledger = cfg.Ledger.l
	}
	c, err := newContainer(&cfg, from, f)
	if err != nil {
		return nil, err
	}
	return &Route{name: cfg.Name, f: f, c: c, from: cfg.From, out: out, park: parkOf(&cfg, from), deadLetters: cfg.DeadLetterPlace}, nil
}

// newContainer makes the container that receives. Around the handler stands a breaker, so that
// an outage of the target stops the intake and costs no message an attempt.
func newContainer(cfg *Config, from transport.Description, f *forwarder) (*container.ListenerContainer, error) {
	guard := breaker.Config{Name: "target of " + cfg.Name, OpenFor: cfg.OpenFor, Logger: cfg.Container.Logger}
	if guard.OpenFor == 0 {
		guard.OpenFor = time.Second
	}
	if p, ok := cfg.To.(transport.Prober); ok {
		guard.Probe = p.Probe
	}
	b, err := breaker.New(guard)
	if err != nil {
		return nil, err
	}
	own := cfg.Container
	own.Name = "bridge:" + cfg.Name
	own.DeadLetter = container.DeadLetter{To: parkOf(cfg, from)}
	own.Redelivery.MaxAttempts = f.attempts
	own.Middleware = append(own.Middleware[:len(own.Middleware):len(own.Middleware)], b)
	if own.Workers == (container.Workers{}) {
		own.Workers = container.Workers{Min: 1, Max: 64}
	}
	if own.Order == nil {
		own.Order = container.ByKey
	}
	return container.New(cfg.From, f, own)
}

func parkOf(cfg *Config, from transport.Description) string {
	switch {
	case cfg.Park != "":
		return cfg.Park
	case from.Transport == "aws_sqs":
		return from.Name + "-parked"
	}
	return from.Name + ".parked"
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

// Start opens a publisher at the target and starts to move messages.
func (r *Route) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pub == nil {
		pub, dest, err := r.out.Publisher(ctx)
		if err != nil {
			return fmt.Errorf("open the target of route %q: %w", r.name, err)
		}
		r.pub = pub
		r.f.target.Store(&target{pub: pub, dest: dest})
	}
	if err := r.c.Start(ctx); err != nil {
		err = errors.Join(err, r.pub.Close(ctx))
		r.pub = nil
		return err
	}
	return nil
}

// Stop drains: what was received is confirmed by the target and acknowledged, or goes back.
func (r *Route) Stop(ctx context.Context) error {
	err := r.c.Stop(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pub != nil {
		err = errors.Join(err, r.pub.Close(ctx))
		r.pub = nil
	}
	return err
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
