package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/bridge/workflow"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
)

func (b *bridgeCommand) cutover() *cobra.Command {
	cmd := b.verb("cutover", "Move a service, one step after the other",
		"cutover prepares the target, waits until the old consumers have ended, forwards, waits for the new\n"+
			"consumers and the producers, and moves the remaining messages, dead letters included. Each step is saved before\n"+
			"the next begins: run it again after Ctrl-C or a crash. Exit code 4: a precondition does not hold.", b.runCutover)
	b.moveFlags(cmd)
	cmd.Flags().StringArrayVar(&b.accept, "accept", nil, "`CODE` of a finding of check that is accepted; repeat for more")
	return cmd
}

func (b *bridgeCommand) rollback() *cobra.Command {
	cmd := b.verb("rollback", "Move a service back, from any step of a cut-over",
		"rollback waits until the new consumers have ended, moves back what they have not done, waits for the\n"+
			"old consumers and the producers. It is refused after finish.", b.runRollback)
	b.moveFlags(cmd)
	return cmd
}

func (b *bridgeCommand) finish() *cobra.Command {
	cmd := b.verb("finish", "Give the old side up",
		"finish ends a move that is drained. It deletes nothing: it lists what exists, with the command that\n"+
			"removes each; until then longshore bridge remaining --watch reports what arrives on the old side.\n"+
			"It cannot be rolled back.", b.runFinish)
	b.moveFlags(cmd)
	return cmd
}

func (b *bridgeCommand) moveFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&b.yes, "yes", false, "do not ask")
}

// step is what a move prints in JSON, a line each.
type step struct {
	Route    string  `json:"route"`
	Phase    string  `json:"phase"`
	Step     int     `json:"step"`
	Of       int     `json:"of"`
	Done     bool    `json:"done"`
	Why      string  `json:"waiting_for,omitempty"`
	Moved    int64   `json:"moved"`
	Known    int64   `json:"known"`
	Rate     float64 `json:"rate"`
	AgeMS    int64   `json:"age_ms,omitempty"`
	ETA      float64 `json:"eta_seconds,omitempty"`
	Limit    string  `json:"limited_by,omitempty"`
	Ready    int64   `json:"ready"`
	Delayed  int64   `json:"delayed"`
	Parked   int64   `json:"parked"`
	Letters  int64   `json:"dead_letters"`
	Seconds  float64 `json:"seconds"`
	OldUsers int64   `json:"old_consumers"`
	NewUsers int64   `json:"new_consumers"`
}

// narrator prints the progress of a move: a line for each step on stdout, what is awaited on
// stderr.
type narrator struct {
	*bridgeCommand

	route string
	shown workflow.Phase // the phase whose task has been printed
	begun bool           // one has been
	line  liveLine       // what is awaited
}

func (n *narrator) report(p workflow.Progress) {
	if n.print.JSON {
		n.json(&p)
		return
	}
	if p.Done {
		n.line.clear()
		at, of := p.Phase.Step()
		// A stdout that is gone must not stop a move halfway: the last line fails as well, and says so.
		_ = n.print.Printf("%d/%d %-58s %5.1fs  %s\n", at, of, n.outcome(&p), p.Took.Seconds(), n.print.PaintOut(cli.Green, "ok"))
		return
	}
	if p.Why == "" {
		return
	}
	if !n.begun || n.shown != p.Phase {
		n.begun, n.shown, n.line.said = true, p.Phase, time.Now()
		at, of := p.Phase.Step()
		n.print.Notef("%d/%d %s", at, of, p.Phase.Waits())
		return
	}
	n.line.show(time.Now(), func() string { return "    " + n.waiting(&p) })
}

func (n *narrator) json(p *workflow.Progress) {
	at, of := p.Phase.Step()
	o := p.Observed
	side := o.Old
	if p.Phase.InRollback() {
		side = o.New
	}
	// As above.
	_ = n.print.Line(step{Route: n.route, Phase: p.Phase.String(), Step: at, Of: of, Done: p.Done, Why: p.Why, Moved: p.Moved, Known: p.Known, Rate: p.Rate,
		AgeMS: p.Lag.Milliseconds(), ETA: p.ETA().Seconds(), Limit: p.Limits, Ready: side.Ready, Delayed: side.Delayed, Parked: o.Parked, Letters: o.DeadLetters,
		Seconds: p.Took.Seconds(), OldUsers: o.Old.Consumers, NewUsers: o.New.Consumers})
}

// waiting is "6 old consumers still there; moved 8530 of 9000, 512/s, ETA 1s, limited by target".
func (n *narrator) waiting(p *workflow.Progress) string {
	if p.Phase.Moves() == workflow.Still {
		return p.Why
	}
	return p.Why + "; " + pace{p.Moved, p.Known, -1, p.Rate, p.ETA(), p.Lag, p.Limits}.String()
}

// outcome is what a step has come to.
func (n *narrator) outcome(p *workflow.Progress) string {
	o := p.Observed
	switch p.Phase {
	case workflow.Planned:
		return "the target is prepared"
	case workflow.Seeded:
		return "the old consumers have ended"
	case workflow.OldEnded, workflow.NewEnded:
		text := fmt.Sprintf("messages flow: %d of %d moved", p.Moved, p.Known)
		if d := o.Old.Delayed; d > 0 && p.Phase == workflow.OldEnded {
			text += fmt.Sprintf(", %d wait for their delay", d)
		}
		return text
	case workflow.Flows:
		return "the new consumers run" + users(o.New.Consumers)
	case workflow.NewRuns:
		return "the producers have left the old side"
	case workflow.Quiet:
		return "the old side is empty, dead letters included"
	case workflow.Returning:
		return "the new consumers have ended"
	case workflow.FlowsBack:
		return "the old consumers run" + users(o.Old.Consumers)
	case workflow.OldRuns:
		return "the producers have left the new side"
	case workflow.QuietBack:
		return "the new side is empty"
	case workflow.Drained, workflow.Finished:
	}
	return p.Phase.String()
}

func users(n int64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(": %d", n)
}

// walk takes the steps of a verb, with this command as their operator.
func (b *bridgeCommand) walk(ctx context.Context, r *config.Route, verb string, steps func(*workflow.Move, context.Context) (workflow.State, error)) (err error) {
	ends := b.ends(r)
	defer func() { err = errors.Join(err, ends.Close()) }()
	n := &narrator{bridgeCommand: b, route: r.Name, line: liveLine{print: b.print}}
	move := workflow.New(workflow.Config{Route: r.Name, Ledger: r.StateDir, Ends: ends, Quiet: r.Quiet, Poll: 250 * time.Millisecond, Report: n.report,
		Ask: func(ctx context.Context, question string) (bool, error) {
			n.line.clear()
			err := b.confirmed(ctx, b.yes, question, "add --yes once it is so")
			return err == nil, err
		}})
	s, err := steps(move, ctx)
	n.line.clear()
	return b.ended(ctx, r, verb, &s, err)
}

func (b *bridgeCommand) runCutover(ctx context.Context, r *config.Route) error {
	before, err := workflow.Load(r.StateDir, r.Name)
	if err != nil {
		return err
	}
	if before.At() == workflow.Planned {
		if err := b.fits(ctx, r); err != nil {
			return err
		}
		question := fmt.Sprintf("move %s to %s?", nameOf(r.From), nameOf(r.To))
		if err := b.confirmed(ctx, b.yes, question, "run "+b.again("cutover", r)+" --yes"); err != nil {
			return err
		}
	}
	return b.walk(ctx, r, "cutover", (*workflow.Move).Cutover)
}

// fits refuses to begin while check has findings that are not accepted.
func (b *bridgeCommand) fits(ctx context.Context, r *config.Route) error {
	if err := b.knownFindings(); err != nil {
		return err
	}
	found, err := b.survey(ctx, r, defaultSample)
	if err != nil {
		return err
	}
	accepted := b.accepted(r)
	if open := found.Open(accepted); len(open) > 0 {
		return workflow.Precondition(r.Name, "check finds "+strings.Join(open, ", "), b.again("check", r)+" explains it; --accept CODE goes on")
	}
	if found.IdentityUnknown && r.IdentityRule != "body" && !slices.Contains(accepted, "NO-ID") {
		return workflow.Precondition(r.Name, "no message was looked at, so it is not known whether each has an identity (NO-ID)",
			b.again("check", r)+" --force looks at them, which counts as a delivery; --accept NO-ID goes on")
	}
	return nil
}

func (b *bridgeCommand) runRollback(ctx context.Context, r *config.Route) error {
	question := fmt.Sprintf("move %s back to %s?", nameOf(r.To), nameOf(r.From))
	if err := b.confirmed(ctx, b.yes, question, "run "+b.again("rollback", r)+" --yes"); err != nil {
		return err
	}
	return b.walk(ctx, r, "rollback", (*workflow.Move).Rollback)
}

func (b *bridgeCommand) runFinish(ctx context.Context, r *config.Route) error {
	question := fmt.Sprintf("give %s up? It cannot be rolled back", nameOf(r.From))
	if err := b.confirmed(ctx, b.yes, question, "run "+b.again("finish", r)+" --yes"); err != nil {
		return err
	}
	return b.walk(ctx, r, "finish", (*workflow.Move).Finish)
}

// moveResult is the last line of a move in JSON.
type moveResult struct {
	Route   string     `json:"route"`
	Phase   string     `json:"phase"`
	Ended   bool       `json:"ended"`
	Next    string     `json:"next,omitempty"`
	Undo    string     `json:"undo,omitempty"`
	Letters int64      `json:"dead_letters_moved,omitempty"`
	ByHand  []leftover `json:"left_by_hand,omitempty"`
}

// ended says where the move stands, how to go on and how to undo it.
func (b *bridgeCommand) ended(ctx context.Context, r *config.Route, verb string, s *workflow.State, err error) error {
	out := moveResult{Route: r.Name, Phase: s.Phase, Ended: err == nil, Letters: s.Moved}
	switch p := s.At(); {
	case p == workflow.Finished:
		if out.Next = b.again("remaining", r) + " --watch"; verb == "finish" && err == nil {
			out.ByHand = b.leftovers(ctx, r)
		}
	case p == workflow.Drained:
		out.Next, out.Undo = b.again("verify", r)+", then "+b.again("finish", r), b.again("rollback", r)
	case p == workflow.Planned:
		out.Next = b.again("cutover", r)
	case p.InRollback():
		out.Next = b.again("rollback", r)
	default:
		out.Next, out.Undo = b.again("cutover", r), b.again("rollback", r)
	}
	if err != nil && ctx.Err() == nil && verb == "cutover" && s.At() == workflow.Planned {
		out.Next = "" // the error says what to do
	}
	if b.print.JSON {
		return errors.Join(err, b.print.Line(out))
	}
	text := fmt.Sprintf("route %s: %s", r.Name, s.Phase)
	if out.Letters > 0 {
		text += fmt.Sprintf(", %d dead letters moved", out.Letters)
	}
	text += "\n"
	if out.Next != "" {
		text += "next: " + out.Next + "\n"
	}
	if out.Undo != "" {
		text += "undo: " + out.Undo + "\n"
	}
	if len(out.ByHand) > 0 {
		text += byHand(out.ByHand)
	}
	return errors.Join(err, b.print.Printf("%s", text))
}
