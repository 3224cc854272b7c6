package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

func newAMQPServer(a *app) *cobra.Command {
	var addr, flavor string
	cmd := &cobra.Command{
		Use:   "amqp-server",
		Short: "Run an in-memory AMQP server that behaves like RabbitMQ, for tests and experiments",
		Long: "amqp-server runs an AMQP 0-9-1 server that behaves like RabbitMQ, for user guest with\n" +
			"password guest, until Ctrl-C. Everything is in memory and lost at the end. Not for production.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return runAMQPServer(cmd.Context(), a, addr, flavor) },
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:5672", "`host:port` to listen on; port 0 picks a free one")
	cmd.Flags().StringVar(&flavor, "flavor", "3.10", "RabbitMQ version to emulate: 3.10, 4.0 or 4.3")
	return cmd
}

// runAMQPServer serves until the context ends.
func runAMQPServer(ctx context.Context, a *app, addr, flavor string) error {
	flavors := map[string]amqptest.Flavor{"3.10": amqptest.V3_10, "4.0": amqptest.V4_0, "4.3": amqptest.V4_3}
	version, ok := flavors[flavor]
	if !ok {
		return &cli.UsageError{Text: "--flavor " + flavor + " is not known", Hint: "use 3.10, 4.0 or 4.3"}
	}
	server, err := amqptest.Start(amqptest.Config{Addr: addr, Flavor: version})
	if err != nil {
		return cannotListen(addr, err)
	}
	if err := announce(a, "amqp", server.Addr, server.URL); err != nil {
		return errors.Join(err, server.Close())
	}
	<-ctx.Done()
	return server.Close()
}

func newSQSServer(a *app) *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "sqs-server",
		Short: "Run an in-memory SQS server, for tests and experiments",
		Long: "sqs-server runs a server that speaks the JSON protocol of Amazon SQS and takes any\n" +
			"credentials. Give its URL to an SDK as the endpoint (AWS_ENDPOINT_URL_SQS). Everything is\n" +
			"in memory and gone at the end. Not for production. It runs until Ctrl-C.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return runSQSServer(cmd.Context(), a, addr) },
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:9324", "`host:port` to listen on; port 0 picks a free one")
	return cmd
}

func runSQSServer(ctx context.Context, a *app, addr string) error {
	server, err := sqstest.Start(sqstest.Config{Addr: addr, CallLog: -1})
	if err != nil {
		return cannotListen(addr, err)
	}
	if err := announce(a, "sqs", server.Addr, server.URL); err != nil {
		return errors.Join(err, server.Close())
	}
	<-ctx.Done()
	return server.Close()
}

// announce prints where a server listens, once it does.
func announce(a *app, kind, addr, url string) error {
	if a.print.JSON {
		return a.print.Line(map[string]string{"server": kind, "addr": addr, "url": url})
	}
	a.print.Notef("%s server on %s, in memory; Ctrl-C ends it", kind, addr)
	return a.print.Printf("%s\n", url)
}

// cannotListen drops the name of the internal package, which means nothing to the caller of the command.
func cannotListen(addr string, err error) error {
	text := err.Error()
	for _, name := range []string{"amqptest: ", "sqstest: "} {
		text = strings.TrimPrefix(text, name)
	}
	return &cli.CodeError{Code: cli.ExitUsage, Err: &longshore.Error{Code: longshore.CodeConfig, Op: "listen on " + addr,
		Err: errors.New(text), Hint: "choose a free address with --addr"}}
}
