package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/bridge/workflow"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/transport"
)

func (b *bridgeCommand) runVerb() *cobra.Command {
	var until string
	var standby bool
	cmd := b.verb("run", "Forward until Ctrl-C",
		"run moves messages from the old side to the new one, outside of a cut-over or during its steps: for\n"+
			"services that are moved by other means. It drains at Ctrl-C. --until empty makes it a finite job.",
		func(ctx context.Context, r *config.Route) error {
			if until != "" && until != "empty" {
				return &cli.UsageError{Text: "--until " + until + " is not known", Hint: "write --until empty"}
			}
			cfg := b.settings(r)
			if cfg.Alone = !standby; until == "empty" {
				cfg.UntilEmpty = min(r.Quiet, 5*time.Second)
			}
			return b.forward(ctx, r, cfg, "what was moved goes back with: "+b.again("rollback", r))
		})
	cmd.Flags().StringVar(&until, "until", "", "end when the source is: empty")
	cmd.Flags().BoolVar(&standby, "standby", false, "other consumers may have the source: stand by for another instance, or share the work with it")
	return cmd
}

func (b *bridgeCommand) mirror() *cobra.Command {
	return b.verb("mirror", "Copy into a shadow next to the old consumers, to try the new side out",
		"mirror makes a second queue with every binding of the first and forwards from there to NAME.shadow,\n"+
			"never to the live target. The second queue goes away with it; the shadow stays and can be deleted.\n"+
			"RabbitMQ only: bindings are those of from.declare.bindings.",
		func(ctx context.Context, r *config.Route) error {
			if r.Tap == nil {
				return workflow.Precondition(r.Name, "it cannot be mirrored: the file names no bindings of its queue", "add from: {declare: {bindings: [{exchange: NAME, key: PATTERN}]}}; a queue that is fed by its name has no copy")
			}
			ends := workflow.NewEnds(workflow.Route{Config: bridge.Config{Name: r.Name, From: r.Tap, To: r.Shadow}, Spare: []transport.Source{r.Shadow}})
			if err := ends.Prepare(ctx); err != nil {
				return err
			}
			cfg := b.settings(r)
			cfg.Name, cfg.From, cfg.To, cfg.Park, cfg.OnUnsendable = r.Name+".mirror", r.Tap, r.Shadow, "", bridge.StopRoute
			return b.forward(ctx, r, cfg, "delete "+nameOf(r.Shadow)+" once it has served its purpose")
		})
}

func (b *bridgeCommand) unpark() *cobra.Command {
	var key string
	cmd := b.verb("unpark", "Move on what was parked, in its order",
		"unpark forwards the parked messages to the target after the cause is removed, and releases their keys.\n"+
			"With --key only those of one key: the others stay, and are received and given back, which counts as\n"+
			"a delivery. Stop bridge run and cutover of this route first: they learn of it when they start again.",
		func(ctx context.Context, r *config.Route) error {
			if r.Parked == nil {
				return workflow.Precondition(r.Name, "its parking place is not known", "name the broker of from in the file instead of a URL")
			}
			cfg := b.settings(r)
			cfg.Name, cfg.From, cfg.UntilEmpty, cfg.OnUnsendable, cfg.Park = r.Name+".unpark", r.Parked, time.Second, bridge.StopRoute, ""
			if key != "" {
				return withLedger(r.Ledger, func(l *bridge.Ledger) error {
					cfg.Ledger = l
					return b.unparkKey(ctx, r, cfg, key)
				})
			}
			if err := b.forward(ctx, r, cfg, "parked messages are forwarded ones now: "+b.again("rollback", r)); err != nil {
				return err
			}
			return withLedger(r.Ledger, func(l *bridge.Ledger) error {
				if l == nil {
					return nil
				}
				return l.ReleaseKeys(ctx) // none has parked messages any more
			})
		})
	cmd.Flags().StringVar(&key, "key", "", "only the messages of this ordering `KEY`")
	return cmd
}

// unparkResult is what unpark --key prints in JSON.
type unparkResult struct {
	Route     string `json:"route"`
	Key       string `json:"key"`
	Forwarded int64  `json:"forwarded"`
	Left      int64  `json:"left"`
	Undo      string `json:"undo"`
}

// unparkKey moves on the parked messages of one key.
func (b *bridgeCommand) unparkKey(ctx context.Context, r *config.Route, cfg bridge.Config, key string) (err error) {
	done, err := bridge.Unpark(ctx, cfg, []byte(key))
	if err != nil && ctx.Err() == nil && done.Forwarded == 0 {
		return err
	}
	out := unparkResult{r.Name, key, done.Forwarded, done.Left, b.again("rollback", r)}
	if b.print.JSON {
		return errors.Join(err, b.print.Document(out))
	}
	return errors.Join(err, b.print.Printf("key %s: forwarded %d; still parked: %s of other keys\nundo: parked messages are forwarded ones now: %s\n", cli.Printable(key), done.Forwarded, messages(int(done.Left)), out.Undo))
}

// withLedger calls use with the ledger in a directory, and closes it; nil where the directory is "".
func withLedger(dir string, use func(*bridge.Ledger) error) (err error) {
	if dir == "" {
		return use(nil)
	}
	l, err := bridge.OpenLedger(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return use(l)
}

// runResult is what run, mirror and unpark print in JSON at their end.
type runResult struct {
	Route     string  `json:"route"`
	Ended     string  `json:"ended"` // "empty", "stopped", "signal"
	Forwarded int64   `json:"forwarded"`
	Looped    int64   `json:"looped"`
	Skipped   int64   `json:"skipped"`
	Parked    int64   `json:"parked"`
	Anonymous int64   `json:"without_identity"`
	Seconds   float64 `json:"seconds"`
}

// forward runs a route until it is finished, stops by itself or a signal comes. What goes to
// another target than the route's is not in the ledger.
func (b *bridgeCommand) forward(ctx context.Context, r *config.Route, cfg bridge.Config, undo string) error {
	dir := r.Ledger
	if cfg.To != r.To {
		dir = ""
	}
	return withLedger(dir, func(l *bridge.Ledger) error {
		cfg.Ledger = l
		return b.forwardWith(ctx, r, cfg, undo)
	})
}

func (b *bridgeCommand) forwardWith(ctx context.Context, r *config.Route, cfg bridge.Config, undo string) error {
	route, err := bridge.New(cfg)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := route.Start(ctx); err != nil {
		return err
	}
	b.print.Notef("%s → %s; Ctrl-C drains and ends it", nameOf(cfg.From), nameOf(cfg.To))
	b.follow(ctx, route)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), route.StopBudget())
	defer cancel()
	why := route.Err()
	err = errors.Join(why, route.Stop(stop))
	s := route.Stats()
	out := runResult{Route: r.Name, Ended: endOf(ctx, why), Forwarded: s.Forwarded, Looped: s.Looped, Skipped: s.Skipped, Parked: s.Parked, Anonymous: s.Anonymous, Seconds: time.Since(began).Seconds()}
	if b.print.JSON {
		return errors.Join(err, b.print.Line(out), b.interrupted(ctx, &cfg))
	}
	text := fmt.Sprintf("forwarded %d, parked %d, looped %d, skipped %d in %.1fs\n", s.Forwarded, s.Parked, s.Looped, s.Skipped, out.Seconds)
	if s.Anonymous > 0 {
		text += fmt.Sprintf("%d had no identity: a crash may have brought some of them twice\n", s.Anonymous)
	}
	return errors.Join(err, b.print.Printf("%sundo: %s\n", text, undo), b.interrupted(ctx, &cfg))
}

func endOf(ctx context.Context, why error) string {
	switch {
	case why != nil:
		return "stopped"
	case ctx.Err() != nil:
		return "signal"
	}
	return "empty"
}

// interrupted: a finite job that a signal ended is not done; a service that it ended is.
func (b *bridgeCommand) interrupted(ctx context.Context, cfg *bridge.Config) error {
	if cfg.UntilEmpty > 0 && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// follow shows the progress until the route has ended or ctx does.
func (b *bridgeCommand) follow(ctx context.Context, route *bridge.Route) {
	every := time.Second
	if b.print.JSON && !b.print.ErrTerminal {
		every = progressWindow
	}
	t := time.NewTicker(every)
	defer t.Stop()
	shown := liveLine{print: b.print, said: time.Now()}
	defer shown.clear()
	for {
		select {
		case <-ctx.Done():
			return
		case <-route.Done():
			return
		case <-t.C:
		}
		p := route.Progress()
		if b.print.JSON {
			_ = b.print.Line(p) // a stdout that is gone fails the last line, too, which says so
			continue
		}
		shown.show(time.Now(), func() string { return routeText(&p) })
	}
}

// routeText is the progress of a route in a line.
func routeText(p *bridge.Progress) string {
	if p.Standby {
		return "standing by: another instance of this route is active"
	}
	text := pace{p.Moved, p.Known, p.Lag, p.Rate, p.ETA, p.Age, string(p.Limit)}.String()
	if p.Failing != "" {
		text += "; waiting for the " + p.Failing
	}
	return text
}

// unsupported reports whether the broker does not support the request.
func unsupported(err error) bool { return errors.Is(err, longshore.CodeUnsupported) }
