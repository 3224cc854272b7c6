package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/bridge/workflow"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
)

func (b *bridgeCommand) verify() *cobra.Command {
	var out string
	var noReread bool
	var db database
	cmd := b.verb("verify", "Compare what was taken with what has arrived",
		"verify adds up the ledger: missing, changed, extra, repeated and parked messages, and the order by key.\n"+
			"A Kafka target is read again as independent evidence. With an inbox in the file the effects are\n"+
			"counted, too. It works while messages are moved, and can be repeated. Exit code 3: there are differences.",
		func(ctx context.Context, r *config.Route) error { return b.runVerify(ctx, r, out, !noReread, &db) })
	cmd.Flags().StringVar(&db.url, "db", "", "database `URL` of the inbox (default from LONGSHORE_DB): postgres://…, mysql://user@host:port/name, sqlite:FILE")
	cmd.Flags().StringVar(&out, "out", "", "write every identity that differs into this `FILE`, a line each")
	cmd.Flags().BoolVar(&noReread, "no-reread", false, "trust the target's confirmations, do not read it again")
	return cmd
}

// verifyResult is what verify prints in JSON.
type verifyResult struct {
	Route  string `json:"route"`
	Reread bool   `json:"reread"`
	OK     bool   `json:"ok"`
	*bridge.Verification
	Effects *bridge.Effects `json:"effects,omitempty"`
}

func (b *bridgeCommand) runVerify(ctx context.Context, r *config.Route, out string, reread bool, db *database) error {
	if r.Ledger == "" {
		return workflow.Precondition(r.Name, "it has no ledger", "write ledger: DIRECTORY before the move; without one nothing can be verified")
	}
	if _, err := os.Stat(r.Ledger); err != nil {
		return workflow.Precondition(r.Name, "no ledger in "+r.Ledger, "run it where the move was run, or name the file by -c")
	}
	var target transport.Source
	if reread && r.Seed != nil { // a topic keeps what was read; a queue's consumers take it away
		target = r.To
	}
	v, err := bridge.Verify(ctx, r.Ledger, target)
	if unsupported(err) {
		v, err = bridge.Verify(ctx, r.Ledger, nil)
	}
	if err != nil {
		return err
	}
	effects, err := b.effects(ctx, r, db)
	if err != nil {
		return err
	}
	ok := v.OK() && (effects == nil || len(effects.Unhandled) == 0)
	if out != "" {
		if err := os.WriteFile(out, []byte(differences(v, effects)), 0o600); err != nil {
			return &cli.UsageError{Text: "--out cannot be written: " + err.Error(), Hint: "name a file in a directory that exists"}
		}
	}
	if b.print.JSON {
		err = b.print.Document(verifyResult{r.Name, v.Reread > 0, ok, v, effects})
	} else {
		text := v.String()
		if effects != nil {
			text += fmt.Sprintf("\neffects  inbox of %s: %d of %d", r.Inbox.Consumer, effects.Handled, effects.Confirmed)
		}
		err = b.print.Printf("%s\n%s", text, first(v, effects))
	}
	if err == nil && !ok {
		return &cli.CodeError{Code: cli.ExitDiffers}
	}
	return err
}

// effects compares the ledger with the inbox of the file; nil where it names none.
func (b *bridgeCommand) effects(ctx context.Context, r *config.Route, from *database) (e *bridge.Effects, err error) {
	if r.Inbox == nil {
		return nil, nil
	}
	db, dialect, err := from.open(b.streams.Env)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := mutex.DDL(dialect, mutex.Tables{Inbox: r.Inbox.Table}); err != nil { // the name becomes a part of the query
		return nil, &cli.UsageError{Text: err.Error(), Hint: "inbox.table of the file is made of letters, digits and _ $ #"}
	}
	if err := ping(ctx, b.app, db, from); err != nil {
		return nil, err
	}
	arg := "?"
	if dialect == mutex.Postgres {
		arg = "$1"
	}
	e, err = bridge.VerifyEffects(ctx, r.Ledger, bridge.InboxIDs(ctx, db, "SELECT id FROM "+r.Inbox.Table+" WHERE consumer = "+arg, r.Inbox.Consumer))
	if err != nil && ctx.Err() == nil {
		err = &longshore.Error{Code: longshore.CodeConfig, Op: "compare the ledger with the inbox", Err: err, Hint: "inbox.table and inbox.consumer of the file must be those of the new consumers"}
	}
	return e, err
}

// shownIDs is how many identities of each kind are printed.
const shownIDs = 20

func first(v *bridge.Verification, e *bridge.Effects) string {
	var t strings.Builder
	for _, kind := range differing(v, e) {
		for i, id := range kind.ids {
			if i == shownIDs {
				fmt.Fprintf(&t, "%s  and %d more: --out FILE has all\n", kind.name, len(kind.ids)-i)
				break
			}
			fmt.Fprintf(&t, "%s  %s\n", kind.name, cli.Printable(id))
		}
	}
	return t.String()
}

func differences(v *bridge.Verification, e *bridge.Effects) string {
	var t strings.Builder
	for _, kind := range differing(v, e) {
		for _, id := range kind.ids {
			fmt.Fprintf(&t, "%s\t%s\n", kind.name, cli.Printable(id))
		}
	}
	return t.String()
}

type difference struct {
	name string
	ids  []string
}

func differing(v *bridge.Verification, e *bridge.Effects) []difference {
	all := []difference{{"missing", v.Missing}, {"changed", v.Changed}, {"extra", v.Extra}, {"inverted", v.Inverted}}
	if e != nil {
		all = append(all, difference{"no effect", e.Unhandled})
	}
	return all
}

func (b *bridgeCommand) remaining() *cobra.Command {
	var quiet time.Duration
	var watch bool
	var cmd *cobra.Command
	cmd = b.verb("remaining", "Count the messages left on the old side",
		"remaining counts ready, unsettled and delayed messages, dead letters, parked messages and consumers of\n"+
			"the old side. Exit code 0: all are 0, and stay 0 for --quiet. Exit code 1: something is left, or arrived.",
		func(ctx context.Context, r *config.Route) error {
			if !cmd.Flags().Changed("quiet") {
				quiet = r.Quiet
			}
			return b.runRemaining(ctx, r, quiet, watch)
		})
	cmd.Flags().DurationVar(&quiet, "quiet", 0, "how long nothing may arrive (default: quiet of the route, 60s)")
	cmd.Flags().BoolVar(&watch, "watch", false, "go on until something arrives, or Ctrl-C")
	return cmd
}

// remainingResult is what remaining prints in JSON.
type remainingResult struct {
	Route       string            `json:"route"`
	Phase       string            `json:"phase"`
	Empty       bool              `json:"empty"`
	Ready       int64             `json:"ready"`
	Unsettled   int64             `json:"unsettled"`
	Delayed     int64             `json:"delayed"`
	DeadLetters int64             `json:"dead_letters"`
	Parked      int64             `json:"parked"`
	Consumers   int64             `json:"consumers"`
	Uncounted   string            `json:"uncounted,omitempty"`
	Places      []transport.Place `json:"places,omitempty"`
	QuietFor    float64           `json:"quiet_seconds"`
}

func (b *bridgeCommand) runRemaining(ctx context.Context, r *config.Route, quiet time.Duration, watch bool) error {
	state, err := workflow.Load(r.StateDir, r.Name)
	if err != nil {
		return err
	}
	began, noted := time.Now(), false
	for {
		left, err := b.left(ctx, r, state.Phase)
		if err != nil {
			return err
		}
		left.QuietFor = time.Since(began).Seconds()
		over := time.Since(began) >= quiet && !watch
		if !left.Empty || over {
			return b.showRemaining(&left)
		}
		if !noted {
			noted = true
			b.print.Notef("all counts are 0; watching for %s", map[bool]string{true: "arrivals until Ctrl-C", false: quiet.String()}[watch])
		}
		t := time.NewTimer(min(time.Second, max(quiet, 100*time.Millisecond)))
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}

// left counts once.
func (b *bridgeCommand) left(ctx context.Context, r *config.Route, phase string) (remainingResult, error) {
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	out := remainingResult{Route: r.Name, Phase: phase}
	source, err := workflow.Count(ctx, r.From)
	if err != nil {
		return out, err
	}
	letters, err := workflow.Count(ctx, r.LettersFrom)
	if err != nil {
		return out, err
	}
	parked, err := workflow.Count(ctx, r.Parked)
	if err != nil {
		return out, err
	}
	out.Ready, out.Unsettled, out.Delayed, out.Consumers, out.Uncounted, out.Places = source.Ready, source.Unsettled, source.Delayed, source.Consumers, source.Uncounted, source.Of
	out.DeadLetters, out.Parked = letters.Messages(), parked.Messages()
	out.Empty = source.Messages()+out.DeadLetters+out.Parked == 0
	return out, nil
}

func (b *bridgeCommand) showRemaining(left *remainingResult) error {
	var err error
	if b.print.JSON {
		err = b.print.Document(left)
	} else {
		consumers := fmt.Sprint(left.Consumers)
		if left.Consumers < 0 {
			consumers = "unknown"
		}
		err = b.print.Printf("%s (%s): ready %d, unsettled %d, delayed %d, dead letters %d, parked %d, consumers %s\n", left.Route, left.Phase,
			left.Ready, left.Unsettled, left.Delayed, left.DeadLetters, left.Parked, consumers)
		if left.Uncounted != "" {
			b.print.Notef("note: not counted: %s", left.Uncounted)
		}
	}
	if err == nil && !left.Empty {
		return &cli.CodeError{Code: cli.ExitNo}
	}
	return err
}
