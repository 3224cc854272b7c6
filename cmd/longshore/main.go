package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/cli"
)

func main() {
	// Without this the first write to a closed pipe ends the process in the middle of
	// what it does: see cli.Outlet.
	signal.Ignore(syscall.SIGPIPE)
	streams := cli.System()
	signals := make(chan os.Signal, 2)
	streams.Signals = signals
	os.Exit(obey(notified(), signals, lastWords, func() int { return run(os.Args[1:], streams) }))
}

// notified takes the signals over from the runtime, which would end the process at once. Two places,
// because a second signal must not be dropped while a verb ends.
func notified() <-chan os.Signal {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c
}

// lastWords is how long a verb may say what it leaves behind at the second signal.
const lastWords = 2 * time.Second

// obey runs a verb and hands it the signals. At the second one it has a moment, then
// the process ends whatever a broker or a read is waiting for.
func obey(from <-chan os.Signal, to chan<- os.Signal, moment time.Duration, verb func() int) int {
	done := make(chan int, 1)
	go func() { done <- verb() }()
	for n := 1; ; n++ {
		select {
		case code := <-done:
			return code
		case s := <-from:
			to <- s
			if n < 2 {
				continue
			}
			t := time.NewTimer(moment)
			defer t.Stop()
			select {
			case code := <-done:
				return code
			case <-t.C:
				return (&cli.Interrupted{Signal: s}).ExitCode()
			}
		}
	}
}
