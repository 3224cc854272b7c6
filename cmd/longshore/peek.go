package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/inspect"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

type peekFlags struct {
	n      int
	format string
	force  bool
}

func (a *app) peek() *cobra.Command {
	var f peekFlags
	cmd := &cobra.Command{
		Use:   "peek TARGET",
		Short: "Look at waiting messages without taking them",
		Long: "peek shows messages that wait, the oldest first, and leaves them where they are.\n" +
			"A queue in which looking has a cost is refused, and the cost named; --force looks all the same.",
		Example: "  longshore peek 'amqp://guest:guest@localhost/?queue=orders.dlq' -n 20\n" +
			"  longshore peek 'amqp://guest:guest@localhost/?queue=orders' --format '%k %v'",
		Args: withTarget(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPeek(cmd.Context(), f, args[0]) },
	}
	fs := cmd.Flags()
	fs.IntVarP(&f.n, "number", "n", 10, "`how many` to show")
	fs.StringVar(&f.format, "format", "", "print each by a pattern: "+inspect.Verbs)
	fs.BoolVar(&f.force, "force", false, "look also where that has a cost")
	return cmd
}

func (a *app) runPeek(ctx context.Context, f peekFlags, target string) error {
	if f.n < 1 {
		return &cli.UsageError{Text: "-n must be at least 1", Hint: "it is the number of messages to show"}
	}
	if f.format != "" && a.print.JSON {
		return &cli.UsageError{Text: "--format and --json exclude each other", Hint: "give one of them"}
	}
	pattern, err := inspect.ParseFormat(f.format)
	if err != nil {
		return &cli.UsageError{Text: err.Error(), Hint: "see longshore peek --help"}
	}
	src, name, err := a.target(target, urls.Options{BrowseCounts: f.force, NoConsumer: true})
	if err != nil {
		return err
	}
	browser, ok := src.(transport.Browser)
	if !ok {
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: "peek into " + name, Err: errors.New("this source cannot be looked into")}
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	var found []*longshore.Delivery
	for next := ""; len(found) < f.n; {
		var page []*longshore.Delivery
		began := time.Now()
		page, next, err = browser.Browse(ctx, next, f.n-len(found))
		if err != nil {
			return errors.Join(a.showMessages(found, f.format != "", pattern), a.refusedLook(ctx, src, err, f.force))
		}
		a.log.Info("page read", zap.String("source", name), zap.Int("messages", len(page)), zap.Duration("took", time.Since(began)))
		found = append(found, page...)
		if next == "" || len(page) == 0 {
			break
		}
	}
	if len(found) == 0 {
		a.print.Notef("no messages wait in %s", name)
	}
	return a.showMessages(found, f.format != "", pattern)
}

// refusedLook says how to look all the same, in the words of this command; but
// first, whether there is anything to look at.
func (a *app) refusedLook(ctx context.Context, src transport.Source, err error, force bool) error {
	var refused *longshore.Error
	if force || !errors.As(err, &refused) || refused.Code != longshore.CodeUnsupported {
		return err
	}
	if p, ok := src.(transport.Prober); ok {
		if missing := p.Probe(ctx); missing != nil {
			return missing
		}
	}
	told := *refused
	told.Hint = "--force looks all the same"
	return &told
}

func (a *app) showMessages(found []*longshore.Delivery, formatted bool, pattern inspect.Format) error {
	if !a.print.JSON && !formatted {
		t := cli.Table{Right: map[int]bool{0: true, 4: true}}
		for i, d := range found {
			row := inspect.Row(i+1, d, 60)
			for c := range row {
				row[c] = cli.Printable(row[c])
			}
			t.Rows = append(t.Rows, row)
		}
		if len(found) == 0 {
			return nil
		}
		return a.print.Printf("%s\n", strings.Join(t.Lines(), "\n"))
	}
	esc := cli.Printable
	if !a.streams.OutTerminal {
		esc = nil // a pipe gets the bytes
	}
	for i, d := range found {
		err := error(nil)
		if a.print.JSON {
			err = a.print.Line(inspect.NewDocument(i+1, d))
		} else {
			err = a.print.Printf("%s", pattern.Render(i+1, d, esc))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
