package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit codes of [Main]. After a second signal it is 128 plus the signal's number:
// 130 for Ctrl-C, 143 for SIGTERM.
const (
	ExitOK     = 0
	ExitFailed = 1
)

// Run starts the components, waits until ctx ends and stops them. It returns
// the error of the start, or what the stop left behind. It looks after no signals: see
// [Main], or give it the context of [signal.NotifyContext].
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
// For another StopTimeout use [Manager.Main] or [Module].
func Main(parts ...Component) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(signals, os.Stderr, parts))
}

// Main is like the function of that name, for the components of the manager.
func (m *Manager) Main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(m.run(signals, os.Stderr))
}

// lastWords is how long a stop at once may take to say what it abandons.
const lastWords = 3 * time.Second

func run(signals <-chan os.Signal, stderr io.Writer, parts []Component) int {
	m, err := New(Config{}, parts...)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return ExitFailed
	}
	return m.run(signals, stderr)
}

func (m *Manager) run(signals <-chan os.Signal, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- m.Start(ctx) }()
	for started := false; !started; {
		select {
		case err := <-result:
			switch {
			case ctx.Err() != nil && errors.Is(err, context.Canceled):
				return ExitOK // interrupted while starting, and undone
			case err != nil:
				fmt.Fprintln(stderr, err)
				return ExitFailed
			}
			started = true
		case s := <-signals:
			if ctx.Err() != nil {
				return exitOfSignal(s)
			}
			cancel() // the start fails and undoes itself
		}
	}
	if ctx.Err() == nil { // else the signal came just too late to undo the start
		<-signals
	}
	return stop(signals, stderr, m, m.parts)
}

// stop drains. A second signal ends the waiting for handlers, and what that
// abandons is reported all the same; a third does not even wait for that.
func stop(signals <-chan os.Signal, stderr io.Writer, m *Manager, parts []Component) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- m.Stop(ctx) }()
	code := ExitOK
	var late <-chan time.Time
	for {
		select {
		case err := <-result:
			return max(report(stderr, parts, err), code)
		case s := <-signals:
			if code != ExitOK {
				return code
			}
			code, late = exitOfSignal(s), time.After(lastWords)
			cancel()
		case <-late:
			fmt.Fprintln(stderr, "longshore: stopped at once; something does not return, and is left as it is")
			return code
		}
	}
}

func report(stderr io.Writer, parts []Component, err error) int {
	for _, c := range parts {
		if r, ok := c.(Reporter); ok {
			if text := r.DrainReport(); text != "" { // none: it has not come to its end
				fmt.Fprintf(stderr, "%s: %s\n", c.Name(), text)
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
