package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
)

// Ends is what a move sees and does at its two sides. [NewEnds] makes it of a route.
type Ends interface {
	// Lock keeps other instances from moving the same route until unlock is called.
	Lock(ctx context.Context) (unlock func(context.Context) error, err error)
	// Topology describes both ends, so that a change between two commands is noticed.
	Topology(ctx context.Context) (string, error)
	// Prepare makes the target ready; it may be called again. Unprepare undoes it.
	Prepare(ctx context.Context) error
	Unprepare(ctx context.Context) error
	// Look counts what is on both sides. The consumer of a running mover is not counted.
	Look(ctx context.Context, running Direction) (Observation, error)
	// Start moves messages until the mover is stopped.
	Start(ctx context.Context, d Direction) (Mover, error)
	// Letters moves dead letters until none are left, and says how many.
	Letters(ctx context.Context, d Direction) (int64, error)
}

// Mover is a route that runs.
type Mover interface {
	Moved() int64
	// Limits says what holds the mover back, for people; "" = nothing.
	Limits() string
	// Age is how old the message is that was moved last; 0 = unknown.
	Age() time.Duration
	// Err is why the mover has stopped by itself; nil while it runs.
	Err() error
	// Stop drains the mover. Its error has that of Err in it.
	Stop(ctx context.Context) error
}

// Progress is what a move reports while it waits, and at the end of each phase.
type Progress struct {
	Phase    Phase
	Done     bool // the phase has just ended
	Why      string
	Moved    int64   // by this command
	Known    int64   // what was moved and what is known to wait
	Rate     float64 // messages a second
	Lag      time.Duration
	Limits   string
	Observed Observation
	Took     time.Duration // since the phase began, in this command
}

// ETA is how long what is known to wait takes at the present rate; 0 = unknown.
func (p *Progress) ETA() time.Duration {
	if p.Rate <= 0 || p.Known <= p.Moved {
		return 0
	}
	return time.Duration(float64(p.Known-p.Moved) / p.Rate * float64(time.Second))
}

// PreconditionError is why a step was refused; nothing was changed by it.
type PreconditionError struct{ Err error }

func (e *PreconditionError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *PreconditionError) Unwrap() error { return e.Err }

// Precondition makes a refusal with its reason and what to do.
func Precondition(route, what, hint string) error {
	return &PreconditionError{&longshore.Error{Code: longshore.CodeState, Op: "move route " + route, Source: route, Err: errors.New(what), Hint: hint}}
}

// Config is a move.
type Config struct {
	Route  string
	Ledger string // directory; the state is below it
	Ends   Ends
	// Quiet is how long nothing may arrive before a side counts as left by its producers.
	Quiet time.Duration
	// Poll is the time between two looks. Zero: 500 ms.
	Poll time.Duration
	// Ask puts a question that no broker can answer. nil: every question is answered no.
	Ask func(ctx context.Context, question string) (bool, error)
	// Report receives the progress. nil: it is dropped.
	Report func(Progress)
	// Now is the clock. nil: time.Now.
	Now func() time.Time
}

// Move is one route on its way from an old broker to a new one.
type Move struct {
	cfg Config
}

// New returns a move. It does no I/O.
func New(cfg Config) *Move {
	if cfg.Poll == 0 {
		cfg.Poll = 500 * time.Millisecond
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Report == nil {
		cfg.Report = func(Progress) {}
	}
	return &Move{cfg: cfg}
}

// Cutover brings the move to [Drained], phase by phase. Interrupted, it leaves a state with
// which the next call goes on. A step whose precondition does not hold is a [PreconditionError].
func (m *Move) Cutover(ctx context.Context) (State, error) {
	return m.run(ctx, func(s *State) (Phase, error) {
		switch p := s.phase(); {
		case p == Finished:
			return p, Precondition(s.Route, "the move is finished", "remove "+fileOf(m.cfg.Ledger, s.Route)+" to begin another one")
		case p.InRollback():
			return p, Precondition(s.Route, "a rollback is under way ("+s.Phase+")", "finish it first: longshore bridge rollback "+s.Route)
		}
		return Drained, nil
	})
}

// Rollback brings the move back to [Planned], whatever its phase.
func (m *Move) Rollback(ctx context.Context) (State, error) {
	return m.run(ctx, func(s *State) (Phase, error) {
		p := s.phase()
		if p == Finished {
			return p, Precondition(s.Route, "the move is finished and the old side given up", "move the messages back with a route in the other direction")
		}
		if p == Seeded {
			if err := m.cfg.Ends.Unprepare(ctx); err != nil {
				return p, err
			}
		}
		if undo := p.Undo(); undo != p {
			return Planned, s.reach(m.cfg.Ledger, undo, m.cfg.Now())
		}
		return Planned, nil
	})
}

// Finish gives the old side up. It is refused before [Drained].
func (m *Move) Finish(ctx context.Context) (State, error) {
	return m.run(ctx, func(s *State) (Phase, error) {
		switch s.phase() {
		case Finished:
			return Finished, nil
		case Drained:
		default:
			return s.phase(), Precondition(s.Route, "the move is not drained yet ("+s.Phase+")", "run longshore bridge cutover "+s.Route+" to its end first")
		}
		o, err := m.cfg.Ends.Look(ctx, Still)
		if err != nil {
			return s.phase(), err
		}
		if n := o.Old.Messages() + o.Parked + o.DeadLetters; n > 0 {
			if err := s.reach(m.cfg.Ledger, NewRuns, m.cfg.Now()); err != nil {
				return s.phase(), err
			}
			return s.phase(), Precondition(s.Route, "not empty: "+messages(n, " has", " have")+" arrived on the old side", "find the producer that still writes there, then run longshore bridge cutover "+s.Route+" again")
		}
		return Finished, s.reach(m.cfg.Ledger, Finished, m.cfg.Now())
	})
}

// run holds the lock, has first decide where to go, and walks there.
func (m *Move) run(ctx context.Context, first func(*State) (Phase, error)) (State, error) {
	s, err := Load(m.cfg.Ledger, m.cfg.Route)
	if err != nil {
		return s, err
	}
	unlock, err := m.cfg.Ends.Lock(ctx)
	if err != nil {
		return s, cutShort(ctx, err)
	}
	// Again, now that it cannot change: a command that has just ended may have gone another way.
	if s, err = Load(m.cfg.Ledger, m.cfg.Route); err == nil {
		err = m.locked(ctx, &s, first)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return s, errors.Join(err, unlock(ending))
}

// cutShort is the error of a command whose context may have ended: what a broker's client says of a
// call that was cut short is no failure. A refusal, and why a mover stopped, remain.
func cutShort(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	_, refused := errors.AsType[*PreconditionError](err)
	_, stopped := errors.AsType[*bridge.StoppedError](err)
	if err == nil || cause == nil || refused || stopped {
		return err
	}
	return cause
}

func (m *Move) locked(ctx context.Context, s *State, first func(*State) (Phase, error)) error {
	if err := m.unchanged(ctx, s); err != nil {
		return cutShort(ctx, err)
	}
	goal, err := first(s)
	if err != nil || s.phase() == goal {
		return cutShort(ctx, err)
	}
	w := walk{m: m, s: s, began: m.cfg.Now(), last: m.cfg.Now()}
	err = cutShort(ctx, w.to(ctx, goal))
	return errors.Join(err, w.stop(ctx))
}

// unchanged compares the ends with what they were when the move began.
func (m *Move) unchanged(ctx context.Context, s *State) error {
	now, err := m.cfg.Ends.Topology(ctx)
	if err != nil {
		return err
	}
	if s.phase() == Planned {
		s.Topology = "" // noted once the target is prepared
		return nil
	}
	if s.Topology != "" && s.Topology != now {
		return Precondition(s.Route, fmt.Sprintf("changed topology: the move began with %s, now it is %s", s.Topology, now),
			"undo the change in the file or on the broker; nothing was moved")
	}
	return nil
}

// walk goes from phase to phase. It owns the mover that runs.
type walk struct {
	m       *Move
	s       *State
	running Direction
	mover   Mover // nil while running is Still
	before  int64 // moved by earlier movers of this command
	assured bool  // the operator has answered the question of this phase
	began   time.Time

	// The rate and the silence are measured between looks.
	last     time.Time
	lastN    int64
	rate     float64
	arrivals time.Time // when something was last seen to arrive or to be moved
}

// to walks until the phase is goal.
func (w *walk) to(ctx context.Context, goal Phase) error {
	w.arrivals = w.m.cfg.Now()
	for w.s.phase() != goal {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		p := w.s.phase()
		if err := w.direct(ctx, p.Moves()); err != nil {
			return err
		}
		o, err := w.look(ctx)
		if err != nil {
			return err
		}
		d := p.Decide(o, w.m.cfg.Quiet)
		w.m.cfg.Report(w.progress(p, o, d))
		if err := w.follow(ctx, p, o, d); err != nil {
			return err
		}
	}
	return nil
}

// follow does what a decision says.
func (w *walk) follow(ctx context.Context, p Phase, o Observation, d Decision) error {
	switch d.Verdict {
	case Refuse:
		return Precondition(w.s.Route, d.Why, d.Hint)
	case Ask:
		yes, err := w.ask(ctx, d.Why)
		if err != nil {
			return err
		}
		if !yes {
			return Precondition(w.s.Route, d.Why, "answer the question, or give --yes")
		}
		w.assured = true
		return nil
	case Wait:
		if o.DeadLetters > 0 && (p == Quiet || p == QuietBack) && o.Parked == 0 {
			n, err := w.m.cfg.Ends.Letters(ctx, p.Moves())
			w.s.Moved += n
			if err != nil {
				return err
			}
		}
		return w.pause(ctx)
	case Advance:
	}
	return w.advance(ctx, p, o, d)
}

func (w *walk) ask(ctx context.Context, question string) (bool, error) {
	if w.m.cfg.Ask == nil {
		return false, nil
	}
	return w.m.cfg.Ask(ctx, question)
}

// advance does what leads to the next phase and saves that it is reached.
func (w *walk) advance(ctx context.Context, p Phase, o Observation, d Decision) error {
	if p == Planned {
		if err := w.m.cfg.Ends.Prepare(ctx); err != nil {
			return err
		}
		topology, err := w.m.cfg.Ends.Topology(ctx)
		if err != nil {
			return err
		}
		w.s.Topology = topology
	}
	next := p.Next()
	if next.Moves() != w.running { // nothing is moved that the state does not say
		if err := w.stop(ctx); err != nil {
			return err
		}
	}
	if err := w.s.reach(w.m.cfg.Ledger, next, w.m.cfg.Now()); err != nil {
		return err
	}
	done := w.progress(p, o, d)
	done.Done = true
	w.m.cfg.Report(done)
	w.assured, w.began, w.arrivals = false, w.m.cfg.Now(), w.m.cfg.Now()
	return nil
}

// direct starts the mover of a phase, and stops another one first.
func (w *walk) direct(ctx context.Context, d Direction) error {
	if w.running == d {
		return nil
	}
	if err := w.stop(ctx); err != nil || d == Still {
		return err
	}
	mover, err := w.m.cfg.Ends.Start(ctx, d)
	if err != nil {
		return err
	}
	w.mover, w.running = mover, d
	w.last, w.lastN = w.m.cfg.Now(), w.moved()
	return nil
}

// stop drains the mover. The operator may have ended ctx: what is on its way is finished.
func (w *walk) stop(ctx context.Context) error {
	if w.mover == nil {
		return nil
	}
	err := w.mover.Stop(context.WithoutCancel(ctx))
	w.before += w.mover.Moved()
	w.mover, w.running = nil, Still
	return err
}

func (w *walk) moved() int64 {
	if w.mover == nil {
		return w.before
	}
	return w.before + w.mover.Moved()
}

// look observes both sides and measures.
func (w *walk) look(ctx context.Context) (Observation, error) {
	if w.mover != nil && w.mover.Err() != nil {
		return Observation{}, w.stop(ctx)
	}
	o, err := w.m.cfg.Ends.Look(ctx, w.running)
	if err != nil {
		return o, err
	}
	now, n := w.m.cfg.Now(), w.moved()
	if span := now.Sub(w.last).Seconds(); span >= 1 {
		w.rate = float64(n-w.lastN) / span
		w.last = now
		if n != w.lastN {
			w.arrivals = now
		}
		w.lastN = n
	} else if n != w.lastN {
		w.arrivals = now
	}
	source := o.Old
	if w.s.phase().InRollback() {
		source = o.New
	}
	if source.Ready+source.Unsettled > 0 {
		w.arrivals = now
	}
	o.Moved, o.Silence, o.Assured = n-w.before, now.Sub(w.arrivals), w.assured
	return o, nil
}

func (w *walk) progress(p Phase, o Observation, d Decision) Progress {
	source := o.Old
	if p.InRollback() {
		source = o.New
	}
	out := Progress{Phase: p, Why: d.Why, Moved: w.moved(), Rate: w.rate, Observed: o, Took: w.m.cfg.Now().Sub(w.began)}
	out.Known = out.Moved + source.Messages()
	if w.mover != nil {
		out.Lag, out.Limits = w.mover.Age(), w.mover.Limits()
	}
	return out
}

func (w *walk) pause(ctx context.Context) error {
	t := time.NewTimer(w.m.cfg.Poll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
