package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
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

// publishCommand is `longshore publish`.
type publishCommand struct {
	*app

	draft  inspect.Draft
	to     string
	hasTo  bool
	dryRun bool
}

// publishResult keeps apart what failed, what may have arrived, and what was never sent: only the last
// can be sent again without a thought.
type publishResult struct {
	Target    string `json:"target"`
	Broker    string `json:"broker,omitempty"` // what the broker at the address calls itself
	Published int    `json:"published"`
	Failed    int    `json:"failed"`
	Unsure    int    `json:"unsure,omitempty"`   // sent, and the answer did not come
	NotSent   int    `json:"not_sent,omitempty"` // left when it ended early
	// FailedLines are the lines of the input that were not published, with --lines or --json-lines.
	FailedLines []int `json:"failed_lines,omitempty"`
	DryRun      bool  `json:"dry_run,omitempty"`
}

// newPublish reads every line before it sends the first message, so that a mistake in the last
// line leaves nothing half done.
func newPublish(a *app) *cobra.Command {
	f := publishCommand{app: a}
	cmd := &cobra.Command{
		Use:   "publish TARGET [FILE|-]",
		Short: "Publish a file or standard input, and wait for the confirmation",
		Long: "publish sends FILE as the body of one message, with --lines each line as a message, and with --json-lines each\n" +
			"line as a JSON object: {\"key\", \"body\", \"headers\", \"id\", \"content_type\"}, as peek --json, tail --json and kcat -J\n" +
			"print them. A body that is not a string is published as JSON. Lines override --key, --header and the like. If a line\n" +
			"cannot be read, nothing is published and the line is named.\n" +
			"publish returns when the broker has confirmed all messages. - is standard input, which is also read when\n" +
			"FILE is left out and standard input is not a terminal.",
		Example: "  longshore publish 'amqp://guest:guest@localhost/?queue=orders' order.json --key c-91\n" +
			"  seq 100 | longshore publish 'amqp://guest:guest@localhost/?queue=orders' --lines\n" +
			"  longshore peek TARGET --json | longshore publish 'kafka://localhost/orders' --json-lines",
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
	fs.BoolVar(&f.draft.JSONLines, "json-lines", false, "publish each line, a JSON object, as a message")
	fs.StringVarP(&f.draft.KeySeparator, "key-separator", "K", "", "with --lines: the key is the text before this separator")
	fs.StringVar(&f.to, "to", "", "publish to this destination on the same broker, for example exchange/routing.key")
	fs.BoolVar(&f.dryRun, "dry-run", false, "show what would be published")
	return cmd
}

// run reads all of the input before it publishes. A mistake in the last line must not leave the lines
// before it published.
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
	if err := p.checkModes(); err != nil {
		return err
	}
	in, err := cli.Await(ctx, func() (drafts, error) { return p.read(p.draft, args[1:]) })
	if err != nil {
		return err
	}
	msgs := in.msgs
	if len(msgs) == 0 || (len(args) == 1 && len(msgs) == 1 && len(msgs[0].Body) == 0) {
		return &cli.UsageError{Text: "there is nothing to publish", Hint: "the input is empty; to publish an empty body, name an empty FILE on the command line"}
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
	err = p.send(ctx, pub, dest, in, &res)
	if res.Unsure == len(msgs) && ctx.Err() == nil { // the error says it all
		return err
	}
	return errors.Join(p.show(res), err)
}

// read reads the messages. It may wait for a person to type them.
func (p *publishCommand) read(d inspect.Draft, args []string) (out drafts, err error) {
	in, closeIn, err := p.input(args)
	if err != nil {
		return out, err
	}
	defer closeIn()
	if out.msgs, out.lines, err = d.ReadNumbered(in); err != nil {
		return out, unreadableInput(err)
	}
	return out, nil
}

// drafts are the messages to publish.
type drafts struct {
	msgs  []*longshore.Message
	lines []int // the line of each in the input; nil: the input is one message
}

// unreadableInput names each line that cannot be read.
func unreadableInput(err error) error {
	joined, many := err.(interface{ Unwrap() []error }) // only what errors.Join made
	if !many {
		return &cli.UsageError{Text: err.Error(), Hint: "see longshore publish --help"}
	}
	var errs []error
	for i, e := range joined.Unwrap() {
		hint := ""
		if i == len(joined.Unwrap())-1 {
			hint = "nothing was published; see longshore publish --help"
		}
		errs = append(errs, &cli.UsageError{Text: e.Error(), Hint: hint})
	}
	return errors.Join(errs...)
}

// checkModes refuses flags that do not go together.
func (p *publishCommand) checkModes() error {
	switch {
	case p.draft.Lines && p.draft.JSONLines:
		return &cli.UsageError{Text: "--lines and --json-lines exclude each other", Hint: "give one of them"}
	case p.draft.KeySeparator != "" && !p.draft.Lines:
		return &cli.UsageError{Text: "--key-separator needs --lines", Hint: "add --lines; in --json-lines the key is the field key"}
	}
	return nil
}

// close closes a publisher within the time for an answer, also after a signal.
func (p *publishCommand) close(ctx context.Context, pub transport.Publisher) error {
	bounded, cancel := p.bounded(context.WithoutCancel(ctx))
	defer cancel()
	return pub.Close(bounded)
}

// publishBatch bounds how many messages are unconfirmed at once.
const publishBatch = 1000

// send publishes batch by batch and counts in res what came of it.
func (p *publishCommand) send(ctx context.Context, pub transport.Publisher, dest string, in drafts, res *publishResult) (err error) {
	failed, msgs := map[int]error{}, in.msgs
	res.Published = 0
	bar := newProgress(p.print)
	defer func() { bar.end(res.Published, int64(len(msgs))) }()
	for at := 0; at < len(msgs); at += publishBatch {
		if len(msgs) > publishBatch {
			bar.show(at, int64(len(msgs)))
		}
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
	if peer, ok := pub.(transport.PeerReporter); ok {
		res.Broker = peer.Peer()
	}
	err = errors.Join(err, p.close(ctx, pub))
	if err == nil && len(failed) > 0 {
		err = &transport.PartialError{Failed: failed, Total: len(msgs)}
		if in.lines != nil {
			res.FailedLines, err = byLine(in.lines, failed)
		}
	}
	return err
}

// byLine names the lines that failed, those with the same error together.
func byLine(lines []int, failed map[int]error) (all []int, err error) {
	type group struct {
		lines []string
		err   error
	}
	groups := map[string]*group{}
	var order []*group
	for _, i := range slices.Sorted(maps.Keys(failed)) {
		all = append(all, lines[i])
		g := groups[failed[i].Error()]
		if g == nil {
			g = &group{err: failed[i]}
			groups[failed[i].Error()] = g
			order = append(order, g)
		}
		g.lines = append(g.lines, strconv.Itoa(lines[i]))
	}
	var errs []error
	for _, g := range order {
		text := "line " + g.lines[0]
		if n := len(g.lines); n > 1 {
			text = "lines " + strings.Join(g.lines[:min(n, 10)], ", ")
			if n > 10 {
				text += fmt.Sprintf(" and %d more", n-10)
			}
		}
		var known *longshore.Error
		if errors.As(g.err, &known) {
			at := *known
			at.Op = text + ": " + at.Op
			errs = append(errs, &at)
			continue
		}
		errs = append(errs, fmt.Errorf("%s: %w", text, g.err))
	}
	return all, errors.Join(errs...)
}

// sendPart gives each part the whole timeout: a long input is not a slow broker.
func (p *publishCommand) sendPart(ctx context.Context, pub transport.Publisher, dest string, part []*longshore.Message) error {
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	began := time.Now()
	p.log.Debug("publishing", zap.String("to", dest), zap.Int("messages", len(part)))
	err := pub.Publish(ctx, dest, part...)
	p.log.Info("publish ended", zap.String("to", dest), zap.Int("messages", len(part)), zap.Duration("took", time.Since(began)), zap.Error(err))
	return err
}

// show keeps apart what failed, what may have arrived and what was not sent: only the last can
// be sent again without a duplicate.
func (p *publishCommand) show(res publishResult) error {
	if p.print.JSON {
		return p.print.Document(res)
	}
	verb := "published"
	if res.DryRun {
		verb = "would publish"
	}
	line := fmt.Sprintf("%s %s to %s", verb, messages(res.Published), res.Target)
	if res.Broker != "" {
		line += " (" + cli.Printable(res.Broker) + ")"
	}
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
