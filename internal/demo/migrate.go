package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/bridge/workflow"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// migration moves the orders of one leg to another while they flow. It is the operator that
// `longshore bridge cutover` waits for: it ends the old container, starts the new one and
// switches the producer, each when its step comes. The producer waits while it is switched, as the
// relay of an outbox would: else a new order of a customer could overtake an older one.
type migration struct {
	from, to *leg
	dir      string // of the bridge's ledger
	tell     func(kind, text string)
	poll     time.Duration
	quiet    time.Duration

	step  workflow.Phase // the step that has been done
	began bool           // one has

	mu    sync.Mutex
	seen  workflow.Observation // the last look at both sides
	moved int64
	state workflow.State // after the move
	proof *bridge.Verification
	// interrupted: Ctrl-C came before the end.
	interrupted bool
}

func newMigration(from, to *leg, cfg Config, tell func(kind, text string)) *migration {
	m := &migration{from: from, to: to, tell: tell, poll: cfg.For / 100, quiet: min(cfg.For/15, time.Second)}
	from.backlog = func() int { o := m.look(); return int(o.Old.Messages()) }
	to.backlog = func() int { o := m.look(); return int(o.New.Messages()) }
	return m
}

func (m *migration) look() workflow.Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

// run moves everything, and proves it from the bridge's ledger and by reading Kafka again.
func (m *migration) run(ctx context.Context) (err error) {
	if m.dir, err = os.MkdirTemp("", "longshore-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	ends := workflow.NewEnds(workflow.Route{Ledger: m.dir, LettersFrom: m.from.rig.dead, LettersTo: m.to.rig.dead, Parked: m.from.rig.parked, Seed: m.to.rig.seed,
		Declare: []transport.Source{m.to.rig.made, m.to.rig.dead, m.from.rig.dead, m.from.rig.parked},
		Config:  bridge.Config{Name: "demo", From: m.from.rig.source, To: m.to.rig.source, Park: m.from.rig.parkTo, Container: container.Config{Logger: zap.NewNop()}}})
	defer func() { err = errors.Join(err, ends.Close()) }()
	moving, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	move := workflow.New(workflow.Config{Route: "demo", Ledger: m.dir, Ends: ends, Quiet: m.quiet, Poll: m.poll, Report: func(p workflow.Progress) {
		if err := m.report(ctx, &p); err != nil {
			giveUp(err) // else the move would wait for this step for ever
		}
	}})
	state, err := move.Cutover(moving)
	if failed := context.Cause(moving); failed != nil {
		err = failed
	}
	if err == nil {
		state, err = move.Finish(ctx)
	}
	m.state = state
	if m.interrupted = ctx.Err() != nil; m.interrupted { // the phase says how far it came
		return nil
	}
	if err == nil {
		m.proof, err = bridge.Verify(context.WithoutCancel(ctx), m.dir, m.to.rig.source)
	}
	return err
}

// report receives each look of the move, and does once what a step asks for.
func (m *migration) report(ctx context.Context, p *workflow.Progress) error {
	m.mu.Lock()
	m.seen, m.moved = p.Observed, p.Moved
	m.mu.Unlock()
	n, of := p.Phase.Step()
	if p.Done {
		if p.Phase == workflow.NewRuns { // the old side is empty: no order can overtake another one
			m.from.producer.release(m.to.outlet)
		}
		m.tell("move", fmt.Sprintf("%d/%d done in %.1f s; %s moved, %s left in %s", n, of, p.Took.Seconds(), thousands(int(p.Moved)), thousands(int(p.Observed.Old.Messages())), m.from.rig.name))
		return nil
	}
	if m.began && m.step == p.Phase {
		return nil
	}
	m.began, m.step = true, p.Phase
	m.tell("move", fmt.Sprintf("%d/%d %s", n, of, p.Phase.Waits()))
	switch p.Phase { //nolint:exhaustive // the other steps need no operator
	case workflow.Seeded:
		return m.from.box.Stop(ctx)
	case workflow.Flows:
		return m.to.subscribe(ctx)
	case workflow.NewRuns:
		m.from.producer.hold()
	}
	return nil
}

// Migration is how the orders came from one broker to another.
type Migration struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Phase is "finished" unless Ctrl-C ended the move.
	Phase string `json:"phase"`
	// Published and Handled are orders on each side.
	PublishedOld int64 `json:"published_old"`
	PublishedNew int64 `json:"published_new"`
	HandledOld   int64 `json:"handled_old"`
	HandledNew   int64 `json:"handled_new"`
	Moved        int64 `json:"moved"`
	DeadMoved    int64 `json:"dead_letters_moved"`
	// Reread is how many messages were read again on the new side, and Missing … Inversions what
	// the comparison with the ledger found.
	Reread     int `json:"reread"`
	Missing    int `json:"missing"`
	Extra      int `json:"extra"`
	Changed    int `json:"changed"`
	Copies     int `json:"copies"`
	Inversions int `json:"inversions"`
	// Left is how many messages were on the old side at the last look, dead letters included.
	Left int64 `json:"left_on_the_old_side"`
	// Pause is the longest time in which no order was handled, in seconds.
	Pause float64 `json:"longest_pause_seconds"`
}

// result adds up the move.
func (m *migration) result() *Migration {
	o := m.look()
	r := &Migration{From: m.from.rig.name, To: m.to.rig.name, Phase: m.state.Phase, PublishedOld: m.from.outlet.sent.Load(), HandledOld: m.from.box.Stats().Acked,
		HandledNew: m.to.box.Stats().Acked, Moved: m.moved, DeadMoved: m.state.Moved, Left: o.Old.Messages() + o.Parked + o.DeadLetters, Pause: m.from.ledger.longestPause().Seconds()}
	if m.to.outlet != nil {
		r.PublishedNew = m.to.outlet.sent.Load()
	}
	if v := m.proof; v != nil {
		r.Reread, r.Missing, r.Extra, r.Changed, r.Copies, r.Inversions = v.Reread, len(v.Missing), len(v.Extra), len(v.Changed), v.Copies, v.Inversions
	}
	return r
}

// OK reports whether the move came to its end and nothing differs.
func (r *Migration) OK() bool {
	return r.Phase == workflow.Finished.String() && r.Reread > 0 && r.Missing+r.Extra+r.Changed+r.Inversions == 0 && r.Left == 0
}

// Lines are the proof as text.
func (r *Migration) Lines() []string {
	lines := []string{
		fmt.Sprintf("%s  %s orders published, %s handled; %s moved to %s with %s", r.From, thousands(int(r.PublishedOld)), thousands(int(r.HandledOld)),
			thousands(int(r.Moved)), r.To, count(int(r.DeadMoved), "dead letter", "dead letters")),
		fmt.Sprintf("%s  %s orders published, %s handled; longest pause in handling %.1f s", r.To, thousands(int(r.PublishedNew)), thousands(int(r.HandledNew)), r.Pause),
	}
	if r.Phase != workflow.Finished.String() {
		return append(lines, fmt.Sprintf("the move was interrupted in phase %s: longshore bridge cutover would continue, rollback would return", r.Phase))
	}
	return append(lines, fmt.Sprintf("verify  %s messages on %s read again: missing %d, extra %d, changed %d, copies %d, out of order %d; left on %s: %d",
		thousands(r.Reread), r.To, r.Missing, r.Extra, r.Changed, r.Copies, r.Inversions, r.From, r.Left))
}
