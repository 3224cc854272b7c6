package main

import (
	"context"
	"errors"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/inspect"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// tailCommand is `longshore tail`.
type tailCommand struct {
	*app

	n          int    // end after this many messages; 0: never
	format     string // pattern of --format
	management string // URL of RabbitMQ's management API
}

// newTail follows copies of new messages, so it needs a broker that makes copies. Where there
// is none, the error says why instead of taking messages from the service.
func newTail(a *app) *cobra.Command {
	t := tailCommand{app: a}
	cmd := &cobra.Command{
		Use:   "tail TARGET",
		Short: "Follow new messages without taking them",
		Long: "tail prints messages as they arrive and takes none of them from their consumers. It runs until Ctrl-C.\n\n" +
			"Kafka: reads the topic from its end, in no group; nothing is committed.\n" +
			"RabbitMQ: a stream is read from its end. For another queue, copies arrive in an exclusive queue of tail's own with the\n" +
			"queue's bindings, which the management API names; messages published to the queue directly are not seen.\n" +
			"amqp://host/vhost?exchange=NAME&keys=… follows an exchange and needs no management API.\n" +
			"SQS: not possible, because receiving a message hides it from its consumers.",
		Example: "  longshore tail 'kafka://localhost/orders'\n" +
			"  longshore tail 'amqp://guest:guest@localhost/?queue=orders' --json | jq .body\n" +
			"  longshore tail 'amqp://guest:guest@localhost/?exchange=shop&keys=order.%23' --format '%T %k %v'",
		Args: withTarget(1),
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd.Context(), args[0]) },
	}
	fs := cmd.Flags()
	fs.IntVarP(&t.n, "number", "n", 0, "end after this many messages; 0: never")
	fs.StringVar(&t.format, "format", "", "print each message by a pattern: "+inspect.Verbs)
	fs.StringVar(&t.management, "management", "", "`URL` of RabbitMQ's HTTP API (default AMQP_MANAGEMENT, or port 15672 of TARGET's host if TARGET has the standard port)")
	return cmd
}

// run closes what it opened also after an interrupt. An exclusive queue would go with the connection,
// but until then it would collect copies.
func (t *tailCommand) run(ctx context.Context, target string) error {
	if t.n < 0 {
		return &cli.UsageError{Text: "-n must be 0 or more", Hint: "it is the number of messages after which tail ends; 0: never"}
	}
	out, err := newMessagePrinter(t.print, t.format, t.streams.OutTerminal)
	if err != nil {
		return err
	}
	src, name, err := t.target(target, urls.Options{NoConsumer: true, Management: t.managementOf(target)})
	if err != nil {
		return err
	}
	follower, ok := src.(transport.Follower)
	if !ok {
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: "follow " + name, Err: errors.New("this source cannot be followed")}
	}
	c, missing, err := t.open(ctx, follower)
	if err != nil {
		return t.ended(ctx, err)
	}
	if missing != "" {
		t.print.Notef("note: %s", missing)
	}
	t.print.Notef("following %s; Ctrl-C ends it", name)
	err = t.follow(ctx, c, out)
	end, cancel := t.bounded(context.WithoutCancel(ctx))
	defer cancel()
	return errors.Join(t.ended(ctx, err), out.flush(), c.Cancel(end), c.Close(end))
}

// open opens the copies.
func (t *tailCommand) open(ctx context.Context, f transport.Follower) (c transport.Consumer, missing string, err error) {
	ctx, cancel := t.bounded(ctx)
	defer cancel()
	copies, missing, err := f.Follow(ctx)
	if err != nil {
		return nil, "", err
	}
	c, err = copies.Open(ctx, transport.OpenOptions{Window: tailWindow})
	return c, missing, err
}

// tailWindow is how many messages are received at once.
const tailWindow = 500

// follow prints what arrives until ctx ends, or t.n messages were printed.
func (t *tailCommand) follow(ctx context.Context, c transport.Consumer, out *messagePrinter) error {
	for shown := 0; ; {
		ds, err := c.Receive(ctx, tailWindow)
		for _, d := range ds {
			if t.n > 0 && shown == t.n {
				return nil
			}
			shown++
			if perr := out.add(d); perr != nil {
				return perr
			}
			if aerr := d.Ack(ctx); aerr != nil { // makes room for the next ones
				return aerr
			}
		}
		if ferr := out.flush(); ferr != nil || err != nil {
			return errors.Join(ferr, err)
		}
		if t.n > 0 && shown == t.n {
			return nil
		}
	}
}

// ended is the error of a follow: to be interrupted is how it ends.
func (t *tailCommand) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// managementOf is the management API of TARGET: that of --management or AMQP_MANAGEMENT, or the
// one next to a broker at the standard port; "" if it cannot be guessed.
func (t *tailCommand) managementOf(target string) string {
	if t.management != "" {
		return t.management
	}
	if api := t.env("AMQP_MANAGEMENT"); api != "" {
		return api
	}
	u, err := url.Parse(target)
	if err != nil || isContainer(target) {
		return ""
	}
	return managementBeside(u)
}

// managementBeside guesses where the management API of a broker is, without a login.
func managementBeside(u *url.URL) string {
	scheme, port := "http", "15672"
	switch u.Scheme {
	case "amqp":
	case "amqps": // a guessed address must not receive the login in clear
		scheme, port = "https", "15671"
	default:
		return ""
	}
	switch u.Port() {
	case "", "5672", "5671": // at a port of its own it may be any of the brokers of that host
		return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(u.Hostname(), port)}).String()
	}
	return ""
}
