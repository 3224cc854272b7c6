package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/demo"
)

type demoFlags struct {
	cfg   demo.Config
	plain bool
}

func (a *app) demo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See a burst, poison, a throttle and a cut connection, with nothing installed",
		Long: "demo publishes orders, handles them by key in parallel and shows what a burst, orders that\n" +
			"cannot be decoded, a throttle and cut connections do to that. Then it drains and counts.\n" +
			"The brokers run in this process unless an address is given; queues at an address are named\n" +
			"longshore-demo-SEED-… and removed at the end. Anything lost is exit code 1.",
		Example: "  longshore demo\n  longshore demo --for 30s --seed 7 --plain",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				f.cfg.Seed = 1 + rand.Uint64N(9999)
			}
			return a.runDemo(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	fs.DurationVar(&f.cfg.For, "for", 15*time.Second, "`time` it takes, at least 1s")
	fs.Uint64Var(&f.cfg.Seed, "seed", 0, "`number` that decides keys and failures (default: random)")
	fs.StringVar(&f.cfg.AMQP, "amqp", "", "`URL` of a RabbitMQ to use instead of the embedded server")
	fs.StringSliceVar(&f.cfg.Kafka, "kafka", nil, "`addresses` host:port,host:port of a Kafka cluster to use instead of the embedded one")
	fs.StringVar(&f.cfg.SQS, "sqs", "", "`endpoint` of an SQS to use instead of the embedded server")
	fs.BoolVar(&f.plain, "plain", false, "lines instead of a redrawn frame, also on a terminal")
	return cmd
}

func (a *app) runDemo(ctx context.Context, f demoFlags) error {
	if f.cfg.For < time.Second {
		return &cli.UsageError{Text: "--for must be at least 1s", Hint: "the steps need some time"}
	}
	f.cfg.Answer = min(a.timeout, 10*time.Second)
	term, _ := a.streams.Env("TERM")
	f.plain = f.plain || a.print.Verbose || !a.streams.ErrTerminal || term == "dumb"
	switch {
	case a.print.JSON:
		f.cfg.Show = demo.NewStream(a.print.Line)
	case a.print.Quiet:
	case f.plain:
		f.cfg.Show = demo.NewPlain(a.streams.Err, a.print.PaintErr)
	default:
		f.cfg.Show = demo.NewFrame(a.streams.Err, a.print.PaintErr, a.streams.Width)
	}
	f.cfg.Log = a.log
	res, err := demo.Run(ctx, a.interrupts.Hard, f.cfg)
	if err != nil {
		return err
	}
	if a.print.JSON {
		err = a.print.Line(struct {
			Type string `json:"type"`
			demo.Result
		}{"result", res})
	} else {
		err = res.Write(a.streams.Out, a.print.PaintOut)
	}
	switch {
	case err != nil:
		return err
	case res.Stopped:
		return a.interrupts.Cause()
	case !res.OK:
		return &cli.CodeError{Code: cli.ExitNo}
	}
	return nil
}
