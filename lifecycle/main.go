package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Exit codes of [Main]. After another signal, a second or more after the first, the code is
// 128 plus the signal's number: 130 for Ctrl-C, 143 for SIGTERM.
const (
	ExitOK     = 0
	ExitFailed = 1
)

// Run starts the components, waits until ctx ends and stops them. It returns
// the error of the start, or what the stop left behind. A ctx that ends during the start
// ends the start and undoes it; if nothing is left behind, the result is nil then too. It
// looks after no signals: see
// [Main], or give it the context of [signal.NotifyContext].
func Run(ctx context.Context, parts ...Component) error {
	m, err := New(Config{}, parts...)
	if err != nil {
		return err
	}
	return m.serve(ctx, nil)
}

// serve starts, waits until run ends and stops; a cancel of rush ends the waiting for
// what runs. A run that ends during the start ends like any other: nil if nothing is left
// behind.
func (m *Manager) serve(run, rush context.Context) error {
	err := m.start(run, undoing{rush: rush})
	if failed, ok := errors.AsType[*startError](err); ok && failed.interrupted && run.Err() != nil {
		return failed.undo
	}
	if err != nil {
		return err
	}
	<-run.Done()
	if rush == nil {
		rush = context.WithoutCancel(run)
	}
	return m.Stop(rush)
}

// Main runs the components until Ctrl-C or SIGTERM, stops them, prints a line for
// each drain on stderr and exits: see the package documentation for the codes.
// For another StopTimeout use [Manager.Main].
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

// run obeys signals from the beginning. The first ends the start or the service, and what
// runs drains; the second ends the waiting for handlers, and what that abandons is reported
// anyway; the third does not even wait for that. Signals within a second count as one.
func (m *Manager) run(signals <-chan os.Signal, stderr io.Writer) int {
	run, end := context.WithCancel(context.Background())
	defer end()
	rush, hurry := context.WithCancel(context.Background())
	defer hurry()
	result := make(chan error, 1)
	go func() { result <- m.serve(run, rush) }()
	code := ExitOK
	var seen stopSignals
	var late <-chan time.Time
	for {
		select {
		case err := <-result:
			return max(m.report(stderr, err), code)
		case s := <-signals:
			switch seen.next(time.Now()) {
			case stopSame:
			case stopBegins:
				end()
			case stopRushes:
				code, late = exitOfSignal(s), time.After(lastWords)
				hurry()
			case stopNow:
				return code
			}
		case <-late:
			fmt.Fprintln(stderr, "longshore: stopped at once; something does not return, and is left as it is")
			return code
		}
	}
}

// report prints how each drain went, also that of a start that was undone.
func (m *Manager) report(stderr io.Writer, err error) int {
	m.mu.Lock()
	parts := slices.Clone(m.parts)
	m.mu.Unlock()
	for _, c := range parts {
		if r, ok := c.(Reporter); ok {
			if text := r.DrainReport(); text != "" { // none: it has not come to its end
				fmt.Fprintf(stderr, "%s: %s\n", c.Name(), text)
			}
		}
	}
	if err == nil {
		return ExitOK
	}
	fmt.Fprintln(stderr, err)
	if stack := stackOf(err); stack != "" {
		fmt.Fprintln(stderr, stack)
	}
	return ExitFailed
}

func exitOfSignal(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 128 + int(syscall.SIGINT)
}
