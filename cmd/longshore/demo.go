package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/demo"
)

// demoCommand is `longshore demo`.
type demoCommand struct {
	*app

	cfg   demo.Config
	plain bool // lines instead of a redrawn frame, also on a terminal
}

// newDemo needs nothing installed: its three brokers are servers in this process, unless a flag
// names a real one.
func newDemo(a *app) *cobra.Command {
	f := demoCommand{app: a}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See a burst, poison, a throttle and a cut connection, with nothing installed",
		Long: "demo publishes orders, handles them by key in parallel and shows what a burst, orders that\n" +
			"cannot be decoded, a throttle and cut connections do to that. Then it drains and counts.\n" +
			"The brokers run in this process unless an address is given; queues at an address are named\n" +
			"longshore-demo-SEED-… and removed at the end. The demo exits with status 1 if an order was lost,\n" +
			"settled twice or handled out of order. The first line has the address of a web page to watch and\n" +
			"steer it; the link logs one browser in. With --stay the load continues until Ctrl-C. With --migrate the\n" +
			"orders are moved from RabbitMQ to Kafka while they flow, and the table is followed by the proof.",
		Example: "  longshore demo\n  longshore demo --migrate\n  longshore demo --stay\n  longshore demo --for 30s --seed 7 --plain",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				f.cfg.Seed = 1 + rand.Uint64N(9999)
			}
			return f.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.DurationVar(&f.cfg.For, "for", 15*time.Second, "how long the load runs, at least 1s; handling the rest takes a few seconds more")
	fs.BoolVar(&f.cfg.Stay, "stay", false, "keep running under load until Ctrl-C")
	fs.BoolVar(&f.cfg.Migrate, "migrate", false, "move the orders from RabbitMQ to Kafka while they flow, and prove it")
	fs.Uint64Var(&f.cfg.Seed, "seed", 0, "seed of keys and failures (default: random)")
	fs.StringVar(&f.cfg.AMQP, "amqp", "", "`URL` of a RabbitMQ to use instead of the embedded server")
	fs.StringSliceVar(&f.cfg.Kafka, "kafka", nil, "brokers `host:port`,… of a Kafka cluster to use instead of the embedded one")
	fs.StringVar(&f.cfg.SQS, "sqs", "", "endpoint `URL` of an SQS to use instead of the embedded server")
	fs.BoolVar(&f.plain, "plain", false, "print lines instead of redrawing, even on a terminal")
	return cmd
}

// run ends with status 1 if the account of the orders does not add up: the demo is also a test that CI
// runs.
func (d *demoCommand) run(ctx context.Context) error {
	if d.cfg.For < time.Second {
		return &cli.UsageError{Text: "--for must be at least 1s", Hint: "the steps need some time"}
	}
	switch {
	case d.cfg.Migrate && d.cfg.Stay:
		return &cli.UsageError{Text: "--migrate and --stay cannot be used together", Hint: "a move has an end; --for makes the demo longer"}
	case d.cfg.Migrate && d.cfg.SQS != "":
		return &cli.UsageError{Text: "--migrate and --sqs cannot be used together", Hint: "the orders are moved from RabbitMQ to Kafka: --amqp and --kafka name real ones"}
	}
	d.cfg.Answer = min(d.timeout, 10*time.Second)
	d.plain = d.plain || d.print.Verbose || !d.streams.ErrTerminal || d.env("TERM") == "dumb"
	switch {
	case d.print.JSON:
		d.cfg.Show = demo.NewStream(d.print.Line)
	case d.print.Quiet:
	case d.plain:
		d.cfg.Show = demo.NewPlain(d.streams.Err, d.print.PaintErr)
	default:
		d.cfg.Show = demo.NewFrame(d.streams.Err, d.print.PaintErr, d.streams.Width)
	}
	d.cfg.Log = d.log
	res, err := demo.Run(ctx, d.interrupts.Hard, d.cfg)
	if err != nil {
		return err
	}
	if d.print.JSON {
		err = d.print.Line(struct {
			Type string `json:"type"`
			demo.Result
		}{"result", res})
	} else {
		err = res.Write(d.streams.Out, d.print.PaintOut)
	}
	switch {
	case err != nil:
		return err
	case res.Stopped:
		return d.interrupts.Cause()
	case !res.OK && !d.cfg.Stay: // a person may have purged and replayed
		return &cli.CodeError{Code: cli.ExitNo}
	}
	return nil
}
