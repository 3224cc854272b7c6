package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/internal/top"
)

// watcher is the command top.
type watcher struct {
	app       *app
	instances instances
	every     time.Duration
	rounds    int
}

// linesEvery is the time between two rounds of lines, unless --every says otherwise.
const linesEvery = 5 * time.Second

func newTop(a *app) *cobra.Command {
	w := &watcher{app: a, instances: instances{app: a}}
	cmd := &cobra.Command{
		Use:   "top [INSTANCE…]",
		Short: "Watch the containers of running services, the worst first",
		Long: "top shows the containers of one or many instances, live: their state, rate, backlog and workers, what limits each of them,\n" +
			"and the deliveries that it holds. Keys pause, resume, throttle, scale and drain; ? lists them.\n" +
			"INSTANCE is the address of an admin API, host:port or a URL; without one top finds it as ctl does.\n" +
			"Where stdout is not a terminal, or with --json, it prints a line for each container and interval.",
		Example: "  longshore top\n" +
			"  longshore top shop-1:8391 shop-2:8391 --token-file /run/secrets/anna\n" +
			"  longshore top -n 1 --json",
		RunE: func(cmd *cobra.Command, args []string) error { return w.run(cmd.Context(), args) },
	}
	w.instances.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&w.every, "every", 0, "pause between two reads (default 1s, between lines "+linesEvery.String()+")")
	f.IntVarP(&w.rounds, "number", "n", 0, "print lines, and end after this many rounds; 0: never")
	return cmd
}

// run draws on a terminal and prints lines everywhere else, so that top works in a pipe and in a log.
func (w *watcher) run(ctx context.Context, args []string) error {
	if w.every < 0 || w.rounds < 0 {
		return &cli.UsageError{Text: "--every and -n must be more than 0", Hint: "write for example --every 2s or -n 1"}
	}
	targets, err := w.instances.find(args) //nolint:contextcheck // reading a file takes no context
	if err != nil {
		return err
	}
	screen := w.app.streams.InTerminal && w.app.streams.OutTerminal && w.app.terminal != nil && !w.app.print.JSON && w.rounds == 0 && w.app.env("TERM") != "dumb"
	every := w.every
	if every == 0 && !screen {
		every = linesEvery
	}
	f := fleet.New(targets, fleet.Config{Every: min(cmp.Or(every, time.Second), 2*time.Second)})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if !screen {
		return w.lines(ctx, f, every)
	}
	return top.Run(ctx, f, top.Config{In: w.app.streams.In, Out: w.app.terminal, Env: w.app.streams.Environ(),
		Look: top.Look{Color: w.app.print.Colored(), ASCII: !utf8Locale(w.app.env)}})
}

// utf8Locale reports whether the locale says that the terminal shows UTF-8. Without a locale it is
// taken for one that does.
func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}

// lines prints a round of lines at each interval, the first when every instance has answered
// or failed to.
func (w *watcher) lines(ctx context.Context, f *fleet.Fleet, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for printed := 0; ; {
		s := f.Snapshot()
		if allAsked(s) {
			if err := w.round(s); err != nil {
				return err
			}
			if printed++; printed == w.rounds {
				return silence(s)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ended(ctx)
			}
			continue
		}
		select {
		case <-f.Changed():
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// allAsked reports whether every instance has answered or failed once. A first round before that would
// report instances as missing that are only slow.
func allAsked(s fleet.Snapshot) bool {
	for _, in := range s.Instances {
		if in.Status == fleet.Asking {
			return false
		}
	}
	return true
}

// ended is how lines end: interrupted, which is the usual way.
func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return ctx.Err()
}

// round prints one line for each container. Silent instances go to standard error, so that a
// pipe reads containers alone.
func (w *watcher) round(s fleet.Snapshot) error {
	for _, in := range s.Instances {
		if in.Status == fleet.Silent {
			w.app.print.Notef("%s does not answer: %s", cli.Printable(in.Name), cli.Printable(in.Problem))
		}
	}
	for _, l := range top.Lines(s, s.At) {
		var err error
		if w.app.print.JSON {
			err = w.app.print.Line(l)
		} else {
			err = w.app.print.Printf("%s\n", l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// silence is an error where no instance answered.
func silence(s fleet.Snapshot) error {
	for _, in := range s.Instances {
		if in.Status == fleet.Live {
			return nil
		}
	}
	in := s.Instances[0]
	return &longshore.Error{Code: longshore.Code(in.Code), Op: "watch " + in.Name, Err: errors.New(in.Problem), Hint: in.Help}
}

// terminalOf is the terminal that a stream is; nil: it is none.
func terminalOf(stream any) *os.File {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}
