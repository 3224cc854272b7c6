// Command longshore shows, publishes, looks at and explains what a service built
// on Longshore does.
//
//	longshore demo                 # see it work, nothing to install
//	longshore explain not-found    # what an error code means and what to do
//	longshore peek 'amqp://guest:guest@localhost/?queue=orders' -n 5
//
// docs/reference/cli.md describes every verb, flag and exit code.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/longshore-go/longshore/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	streams := cli.System()
	streams.Signals = signals
	os.Exit(run(os.Args[1:], streams))
}
