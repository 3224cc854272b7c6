package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/inspect"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// publishCommand is `longshore publish`.
type publishCommand struct {
	*app

	draft  inspect.Draft
	to     string
	hasTo  bool
	dryRun bool
}

type publishResult struct {
	Target    string `json:"target"`
	Published int    `json:"published"`
	Failed    int    `json:"failed"`
	Unsure    int    `json:"unsure,omitempty"`   // sent, and the answer did not come
	NotSent   int    `json:"not_sent,omitempty"` // left when it ended early
	DryRun    bool   `json:"dry_run,omitempty"`
}

func newPublish(a *app) *cobra.Command {
	f := publishCommand{app: a}
	cmd := &cobra.Command{
		Use:   "publish TARGET [FILE|-]",
		Short: "Publish a file, or what comes on standard input, and wait for the confirmation",
		Long: "publish sends FILE as the body of one message, or with --lines each line as one,\n" +
			"and returns when the broker has confirmed all of them. - is standard input, which\n" +
			"is also read when it is no terminal and FILE is left out.",
		Example: "  longshore publish 'amqp://guest:guest@localhost/?queue=orders' order.json --key c-91\n" +
			"  seq 100 | longshore publish 'amqp://guest:guest@localhost/?queue=orders' --lines",
		Args: withTarget(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.draft.HasKey = cmd.Flags().Changed("key")
			f.hasTo = cmd.Flags().Changed("to")
			return f.run(cmd.Context(), args)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.draft.Key, "key", "", "ordering key")
	fs.StringArrayVarP(&f.draft.Headers, "header", "H", nil, "header as `name=value`; repeat for more")
	fs.StringVar(&f.draft.HeadersJSON, "headers-json", "", "more headers as a `JSON` object, for names with = and values that are numbers or true")
	fs.StringVar(&f.draft.ID, "id", "", "message id; --lines appends a number")
	fs.StringVar(&f.draft.ContentType, "content-type", "", "media type of the body")
	fs.BoolVarP(&f.draft.Lines, "lines", "l", false, "publish each line as a message; empty lines are skipped")
	fs.StringVar(&f.to, "to", "", "publish to this destination on the same broker, for example exchange/routing.key")
	fs.BoolVar(&f.dryRun, "dry-run", false, "show what would be published")
	return cmd
}

func (p *publishCommand) run(ctx context.Context, args []string) error {
	src, name, err := p.target(args[0], urls.Options{NoConsumer: true})
	if err != nil {
		return err
	}
	outlet, ok := src.(transport.Outlet)
	if !ok {
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: "publish to " + name, Err: errors.New("this source has no publisher")}
	}
	if p.to == "" && p.hasTo {
		return &cli.UsageError{Text: "--to is empty", Hint: "leave it out to publish to TARGET"}
	}
	msgs, err := cli.Await(ctx, func() ([]*longshore.Message, error) { return p.read(p.draft, args[1:]) })
	if err != nil {
		return err
	}
	if len(msgs) == 0 || (len(args) == 1 && len(msgs) == 1 && len(msgs[0].Body) == 0) {
		return &cli.UsageError{Text: "there is nothing to publish", Hint: "the input is empty; an empty body is sent with an empty FILE named on the command line"}
	}
	pub, dest, err := outlet.Publisher(ctx) // does not connect yet
	if err != nil {
		return err
	}
	if p.to != "" {
		dest = p.to
	}
	res := publishResult{Target: destOf(src, dest), Published: len(msgs), DryRun: p.dryRun}
	if p.dryRun {
		return errors.Join(p.show(res), p.close(ctx, pub))
	}
	err = p.send(ctx, pub, dest, msgs, &res)
	if res.Unsure == len(msgs) && ctx.Err() == nil { // the error says it all
		return err
	}
	return errors.Join(p.show(res), err)
}

// drafted reads the messages. It may wait for somebody to type them.
func (p *publishCommand) read(d inspect.Draft, args []string) ([]*longshore.Message, error) {
	in, closeIn, err := p.input(args)
	if err != nil {
		return nil, err
	}
	defer closeIn()
	msgs, err := d.Read(in)
	if err != nil {
		return nil, &cli.UsageError{Text: err.Error(), Hint: "see longshore publish --help"}
	}
	return msgs, nil
}

// closed closes a publisher within the time for an answer, also after a signal.
func (p *publishCommand) close(ctx context.Context, pub transport.Publisher) error {
	bounded, cancel := p.bounded(context.WithoutCancel(ctx))
	defer cancel()
	return pub.Close(bounded)
}

// publishBatch bounds how many messages are unconfirmed at once.
const publishBatch = 1000

// send publishes batch by batch and counts in res what came of it.
func (p *publishCommand) send(ctx context.Context, pub transport.Publisher, dest string, msgs []*longshore.Message, res *publishResult) (err error) {
	failed := map[int]error{}
	res.Published = 0
	for at := 0; at < len(msgs); at += publishBatch {
		part := msgs[at:min(at+publishBatch, len(msgs))]
		err = p.sendPart(ctx, pub, dest, part)
		var partial *transport.PartialError
		if errors.As(err, &partial) {
			for i, e := range partial.Failed {
				failed[at+i] = e
			}
			res.Published += len(part) - len(partial.Failed)
			if err = ctx.Err(); err == nil && !errors.Is(partial, context.DeadlineExceeded) {
				continue
			}
		} else if err != nil {
			res.Unsure = len(part)
		} else {
			res.Published += len(part)
			continue
		}
		res.NotSent = len(msgs) - at - len(part)
		break
	}
	for _, e := range failed {
		if errors.Is(e, longshore.CodeMaybeSent) || errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) {
			res.Unsure++
		} else {
			res.Failed++
		}
	}
	err = errors.Join(err, p.close(ctx, pub))
	if err == nil && len(failed) > 0 {
		err = &transport.PartialError{Failed: failed, Total: len(msgs)}
	}
	return err
}

func (p *publishCommand) sendPart(ctx context.Context, pub transport.Publisher, dest string, part []*longshore.Message) error {
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	began := time.Now()
	p.log.Debug("publishing", zap.String("to", dest), zap.Int("messages", len(part)))
	err := pub.Publish(ctx, dest, part...)
	p.log.Info("publish ended", zap.String("to", dest), zap.Int("messages", len(part)), zap.Duration("took", time.Since(began)), zap.Error(err))
	return err
}

func (p *publishCommand) show(res publishResult) error {
	if p.print.JSON {
		return p.print.Document(res)
	}
	verb := "published"
	if res.DryRun {
		verb = "would publish"
	}
	line := fmt.Sprintf("%s %s to %s", verb, messages(res.Published), res.Target)
	if res.Failed > 0 {
		line += fmt.Sprintf(", %d failed", res.Failed)
	}
	if res.Unsure > 0 {
		line += fmt.Sprintf(", %d sent but not confirmed: they may have arrived", res.Unsure)
	}
	if res.NotSent > 0 {
		line += fmt.Sprintf(", %d not sent", res.NotSent)
	}
	return p.print.Printf("%s\n", line)
}

// input opens FILE or standard input.
func (p *publishCommand) input(args []string) (io.Reader, func(), error) {
	none := func() {}
	if len(args) == 0 && p.streams.InTerminal {
		return nil, none, &cli.UsageError{Text: "no FILE and nothing on standard input", Hint: "name a file, or - to type the body"}
	}
	if len(args) == 0 || args[0] == "-" {
		return p.streams.In, none, nil
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, none, &cli.UsageError{Text: err.Error(), Hint: "name a readable file, or - for standard input"}
	}
	return file, func() { _ = file.Close() }, nil // only read from
}
