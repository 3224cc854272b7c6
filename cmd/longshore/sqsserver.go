package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

func (a *app) sqsServer() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "sqs-server",
		Short: "Run an in-memory SQS server, for tests and trying out",
		Long: "sqs-server runs a server that speaks the JSON protocol of Amazon SQS and takes any\n" +
			"credentials. Give its URL to an SDK as the endpoint (AWS_ENDPOINT_URL_SQS). Everything is\n" +
			"in memory and gone at the end. Not for production. It runs until Ctrl-C.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSQSServer(cmd.Context(), addr) },
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:9324", "`host:port` to listen on; port 0 takes a free one")
	return cmd
}

func (a *app) runSQSServer(ctx context.Context, addr string) error {
	server, err := sqstest.Start(sqstest.Config{Addr: addr, CallLog: -1})
	if err != nil {
		return cannotListen(addr, err)
	}
	if err := a.announce("sqs", server.Addr, server.URL); err != nil {
		return errors.Join(err, server.Close())
	}
	<-ctx.Done()
	return server.Close()
}
