package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of [Main]. At the second signal it is 128 plus the signal's number:
// 130 for Ctrl-C, 143 for SIGTERM.
const (
	ExitOK     = 0
	ExitFailed = 1
)

// Run starts the components, waits until ctx ends and stops them. It returns
// the error of the start, or what the stop left behind.
func Run(ctx context.Context, parts ...Component) error {
	m, err := New(Config{}, parts...)
	if err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return m.Stop(context.WithoutCancel(ctx))
}

// Main runs the components until Ctrl-C or SIGTERM, stops them, prints a line for
// each drain on stderr and exits: see the package documentation for the codes.
// For another StopTimeout use a [Manager] or [Module].
func Main(parts ...Component) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(signals, os.Stderr, parts))
}

func run(signals <-chan os.Signal, stderr io.Writer, parts []Component) int {
	m, err := New(Config{}, parts...)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return ExitFailed
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result := make(chan error, 1)
	stopped := false

	go func() { result <- m.Start(ctx) }()
	for started := false; ; {
		select {
		case err := <-result:
			if !stopped && ctx.Err() != nil && errors.Is(err, context.Canceled) {
				return ExitOK // interrupted while starting, and undone
			}
			if stopped || err != nil {
				return report(stderr, parts, err, stopped)
			}
			started = true
		case s := <-signals:
			if stopped || ctx.Err() != nil {
				return exitOfSignal(s)
			}
			if !started { // a signal while starting: the start fails and undoes itself
				cancel()
				continue
			}
			stopped = true
			go func() { result <- m.Stop(context.Background()) }()
		}
	}
}

func report(stderr io.Writer, parts []Component, err error, stopped bool) int {
	if stopped {
		for _, c := range parts {
			if r, ok := c.(Reporter); ok {
				fmt.Fprintf(stderr, "%s: %s\n", c.Name(), r.DrainReport())
			}
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return ExitFailed
	}
	return ExitOK
}

func exitOfSignal(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 128 + int(syscall.SIGINT)
}
