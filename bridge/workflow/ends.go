package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/transport"
)

// Seed prepares the consumers' place on the new side: a Kafka group gets its positions.
// kafka.GroupSeed is one.
type Seed interface {
	Prepare(ctx context.Context) error
	Drop(ctx context.Context) error
}

// Route is a route in both directions: what [NewEnds] needs.
type Route struct {
	// Config is the way forth. Name, From and To are needed; its Ledger is opened below the
	// directory of the move, and UntilEmpty, Return and Alone are set as needed.
	Config bridge.Config
	Ledger string // directory; "" = none
	// LettersFrom and LettersTo are the places of dead letters; nil = they stay.
	LettersFrom, LettersTo transport.Source
	// Parked is where messages are that the target refused; nil = not counted.
	Parked transport.Source
	// Declare are sources that are opened once, so that what they declare exists.
	Declare []transport.Source
	// Spare are sources that are opened once as well; one that exists with other properties is
	// used as it is.
	Spare []transport.Source
	// Seed of the new side; nil = it needs none.
	Seed Seed
	// Lock is a Kafka group that only a running move is a member of, where no side is RabbitMQ;
	// nil = none.
	Lock transport.Source
}

// Sides are the two sides of a route at real brokers.
type Sides struct {
	r Route

	mu     sync.Mutex
	ledger *bridge.Ledger // opened by the first mover
}

// NewEnds makes the ends of a route. Close them after the last move.
func NewEnds(r Route) *Sides { return &Sides{r: r} }

// Close closes the ledger.
func (s *Sides) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger == nil {
		return nil
	}
	err := s.ledger.Close()
	s.ledger = nil
	return err
}

// Lock takes the route's lock at the first broker that has locks: RabbitMQ. Where neither has, it
// is the membership of Route.Lock. Without that the saved state alone keeps two commands on one
// directory apart.
func (s *Sides) Lock(ctx context.Context) (unlock func(context.Context) error, err error) {
	for _, side := range []transport.Source{s.r.Config.From, s.r.Config.To} {
		l, ok := side.(transport.Locker)
		if !ok || !side.Capabilities().OpensPaused {
			continue
		}
		c, err := l.Locked("longshore.bridge."+s.r.Config.Name+".move").Open(ctx, transport.OpenOptions{Window: 1, Paused: true})
		if errors.Is(err, longshore.CodeNotFound) {
			continue // a target that is not made yet
		}
		if errors.Is(err, longshore.CodeExclusive) {
			return nil, s.taken()
		}
		if err != nil {
			return nil, err
		}
		return c.Close, nil
	}
	if s.r.Lock != nil {
		return s.join(ctx)
	}
	return func(context.Context) error { return nil }, nil
}

func (s *Sides) taken() error {
	return Precondition(s.r.Config.Name, "another cutover or rollback of this route is running", "let it finish, or stop it; it may run on another host")
}

// joinLook is the time between two looks at the group of the lock.
const joinLook = 100 * time.Millisecond

// join becomes the only member of the group of the lock. Of two commands that join at the same
// moment one or none stays. A command that was killed is a member until its session ends.
func (s *Sides) join(ctx context.Context) (unlock func(context.Context) error, err error) {
	members, err := Count(ctx, s.r.Lock)
	if err == nil && members.Consumers > 0 {
		err = s.taken()
	}
	if err != nil {
		return nil, err
	}
	c, err := s.r.Lock.Open(ctx, transport.OpenOptions{Window: 1, Paused: true})
	if errors.Is(err, longshore.CodeNotFound) { // a topic that is not made yet
		return func(context.Context) error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	t := time.NewTicker(joinLook)
	defer t.Stop()
	for {
		members, err := Count(ctx, s.r.Lock)
		switch {
		case err == nil && members.Consumers == 1:
			return c.Close, nil
		case err == nil && members.Consumers > 1:
			err = s.taken()
		case err == nil && ctx.Err() != nil:
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
		}
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
}

// Topology names both places, and tells them from others of the same name where the broker can.
func (s *Sides) Topology(ctx context.Context) (string, error) {
	var parts []string
	for _, side := range []transport.Source{s.r.Config.From, s.r.Config.To} {
		text := placeOf(side)
		if i, ok := side.(transport.Incarnated); ok {
			switch id, err := i.Incarnation(ctx); {
			case err == nil:
				text += " #" + id
			case !errors.Is(err, longshore.CodeNotFound):
				return "", err
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " → "), nil
}

func placeOf(s transport.Source) string {
	d, ok := s.(transport.Describer)
	if !ok {
		return "?"
	}
	about := d.Describe()
	if about.Namespace != "" {
		about.Address += "/" + about.Namespace
	}
	return fmt.Sprintf("%s %s at %s", about.Transport, about.Name, about.Address)
}

// Prepare makes the places of the new side and seeds its group.
func (s *Sides) Prepare(ctx context.Context) error {
	for i, d := range slices.Concat(s.r.Declare, s.r.Spare) {
		c, err := d.Open(ctx, transport.OpenOptions{Window: 1, Paused: true})
		if i >= len(s.r.Declare) && errors.Is(err, longshore.CodeMismatch) {
			continue
		}
		if err != nil {
			return fmt.Errorf("create what route %q needs: %w", s.r.Config.Name, err)
		}
		if err := c.Close(ctx); err != nil {
			return err
		}
	}
	if s.r.Seed != nil {
		err := s.r.Seed.Prepare(ctx)
		if errors.Is(err, longshore.CodeState) {
			err = &PreconditionError{err}
		}
		return err
	}
	side, err := count(ctx, s.r.Config.To)
	if err == nil && side.Messages() > 0 {
		err = Precondition(s.r.Config.Name, fmt.Sprintf("not empty: the target holds %d messages", side.Messages()), "let its consumers take them, or move to another queue")
	}
	return err
}

// Unprepare drops the seed. Places that were made stay: they are empty.
func (s *Sides) Unprepare(ctx context.Context) error {
	if s.r.Seed == nil {
		return nil
	}
	return s.r.Seed.Drop(ctx)
}

// Look counts both sides.
func (s *Sides) Look(ctx context.Context, running Direction) (o Observation, err error) {
	if o.Old, err = count(ctx, s.r.Config.From); err != nil {
		return o, err
	}
	if o.New, err = count(ctx, s.r.Config.To); err != nil {
		return o, err
	}
	own, letters := &o.Old, s.r.LettersFrom
	if running == Back {
		own, letters = &o.New, s.r.LettersTo
	}
	if running != Still {
		own.Consumers = max(own.Consumers-1, min(own.Consumers, 0)) // the bridge's own
	}
	parked, err := count(ctx, s.r.Parked)
	if err != nil {
		return o, err
	}
	dead, err := count(ctx, letters)
	o.Parked, o.DeadLetters = parked.Messages(), dead.Messages()
	return o, err
}

// Count is what remains at a place: nothing where it does not exist, or src is nil.
func Count(ctx context.Context, src transport.Source) (transport.Remaining, error) {
	if src == nil {
		return transport.Remaining{}, nil
	}
	c, ok := src.(transport.Remainder)
	if !ok {
		return transport.Remaining{}, &longshore.Error{Code: longshore.CodeUnsupported, Op: "count what remains at " + placeOf(src), Err: errors.New("it does not count its messages"), Hint: "use a source of a built-in transport"}
	}
	r, err := c.Remaining(ctx)
	if errors.Is(err, longshore.CodeNotFound) {
		return transport.Remaining{}, nil
	}
	return r, err
}

func count(ctx context.Context, src transport.Source) (Side, error) {
	r, err := Count(ctx, src)
	return Side{Ready: r.Ready, Unsettled: r.Unsettled, Delayed: r.Delayed, Consumers: r.Consumers}, err
}

// Start runs the route, or the return route.
func (s *Sides) Start(ctx context.Context, d Direction) (Mover, error) {
	cfg, err := s.config(d)
	if err != nil {
		return nil, err
	}
	cfg.Alone = true
	r, err := bridge.New(cfg)
	if err != nil {
		return nil, err
	}
	if err := r.Start(ctx); err != nil {
		if why, is := errors.AsType[*bridge.StoppedError](err); is && why.Reason.Precondition() {
			err = &PreconditionError{err}
		}
		return nil, err
	}
	return mover{r}, nil
}

// config is the route in one direction.
func (s *Sides) config(d Direction) (bridge.Config, error) {
	cfg := s.r.Config
	if d == Back {
		cfg.Name, cfg.From, cfg.To, cfg.Return, cfg.Park = cfg.Name+".back", cfg.To, cfg.From, true, ""
		cfg.OnUnsendable = bridge.StopRoute // the old broker had it before
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger == nil && s.r.Ledger != "" {
		l, err := bridge.OpenLedger(s.r.Ledger)
		if err != nil {
			return cfg, err
		}
		s.ledger = l
	}
	cfg.Ledger = s.ledger
	return cfg, nil
}

// settled is how long a place of dead letters is empty before it counts as moved.
const settled = time.Second

// Letters moves the dead letters until none are left.
func (s *Sides) Letters(ctx context.Context, d Direction) (int64, error) {
	from, to := s.r.LettersFrom, s.r.LettersTo
	if d == Back {
		from, to = to, from
	}
	if from == nil || to == nil {
		return 0, nil
	}
	cfg, err := s.config(d)
	if err != nil {
		return 0, err
	}
	cfg.Name += ".dead-letters"
	cfg.From, cfg.To, cfg.DeadLetters, cfg.UntilEmpty, cfg.Park = from, to, true, settled, ""
	cfg.OnUnsendable = bridge.StopRoute
	r, err := bridge.New(cfg)
	if err != nil {
		return 0, err
	}
	err = r.Run(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	return r.Stats().Forwarded, err
}

// mover is a route.
type mover struct{ *bridge.Route }

// Moved is what the route is done with.
func (m mover) Moved() int64 { return m.Progress().Moved }

// Age is that of the message moved last.
func (m mover) Age() time.Duration { return m.Stats().Age }

// Limits says what holds the route back.
func (m mover) Limits() string {
	p := m.Progress()
	return string(p.Limit)
}

// Stop drains within the route's budget.
func (m mover) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.StopBudget())
	defer cancel()
	return errors.Join(m.Route.Err(), m.Route.Stop(ctx))
}
