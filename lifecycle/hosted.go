package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// undoMost is what is kept of a start's time to undo it, where a quarter is more.
const undoMost = 5 * time.Second

// Hosted starts and stops a manager's components inside a framework that has a lifecycle of
// its own, gives each step a deadline, and obeys signals only once everything has started.
// Package lifecyclefx uses it for fx. A Hosted starts and stops once.
type Hosted struct {
	m      *Manager                             // whose components it starts and stops
	down   func()                               // asks the framework to shut the application down
	notify func(chan<- os.Signal) (stop func()) // subscribes to the process's signals; tests send their own

	early    earlySignals // catches a signal between Listen and Start
	watching *startWatch  // obeys signals; set while the components run
}

// Hosted returns the manager's start and stop for another framework. After a signal during
// the start it calls shutdown once, which asks the framework to stop the application.
func (m *Manager) Hosted(shutdown func()) *Hosted {
	return m.hosted(shutdown, notifySignals)
}

func (m *Manager) hosted(shutdown func(), notify func(chan<- os.Signal) (stop func())) *Hosted {
	return &Hosted{m: m, down: shutdown, notify: notify, early: earlySignals{notify: notify}}
}

// Listen obeys signals from now on, for a framework that runs other start hooks before
// Start. A signal that comes before Start does not end the process; Start then starts nothing
// and asks for the shutdown. A second signal, a second later or more, ends the process as
// usual. Whoever calls Listen calls Unlisten when the framework's start is over.
func (h *Hosted) Listen() { h.early.begin() }

// Unlisten ends what Listen began, where Start has not ended it.
func (h *Hosted) Unlisten() { h.early.end() }

func notifySignals(c chan<- os.Signal) (stop func()) {
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return func() { signal.Stop(c) }
}

// errSignal is the cause of a start that a signal ended.
var errSignal = errors.New("a signal ended the start")

// Start starts the components within the deadline of ctx. A quarter of that time, at most
// 5 s, is kept to stop what had started if the start takes too long: fx, for one, abandons a
// hook whose time is over and does not stop it (uber-go/fx #767, #1035).
//
// SIGINT or SIGTERM ends the start. Start then returns nil and asks for the shutdown, so that
// Stop has the whole StopTimeout to drain what had started and the process exits with 0 if
// nothing is left behind. An error would make it exit with 1 in any case.
func (h *Hosted) Start(ctx context.Context) error {
	w := watchSignals(ctx, h)
	how := undoing{keep: func() bool { return errors.Is(context.Cause(w.run), errSignal) }}
	early := w.run
	if end, ok := ctx.Deadline(); ok {
		kept := min(time.Until(end)/4, undoMost)
		limited, cancel := context.WithDeadline(early, end.Add(-kept))
		defer cancel()
		early, how.by = limited, end.Add(-kept/8) // fx replaces a late error by its own, which names no component
	}
	err := h.m.start(early, how) //nolint:contextcheck // early is of the signals, which end it, and bounded by ctx
	if failed, ok := errors.AsType[*startError](err); ok && failed.kept {
		err = nil
	}
	if err != nil {
		w.end()
		return fmt.Errorf("lifecycle: %w", err)
	}
	h.watching = w
	return nil
}

// Stop stops the components. It returns shortly before the deadline of ctx, so that its error,
// which names the components that did not stop, reaches the framework.
func (h *Hosted) Stop(ctx context.Context) error {
	if w := h.watching; w != nil {
		h.watching = nil
		defer w.end()
		hurried, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(w.rush, cancel)() //nolint:contextcheck // hurried is made from ctx
		ctx = hurried
	}
	var doneBy time.Time
	if end, ok := ctx.Deadline(); ok {
		doneBy = end.Add(-min(time.Until(end)/32, undoMost/8))
	}
	return h.m.stopBy(ctx, doneBy)
}

// startWatch obeys signals from the start until the framework does, which is after the last
// start hook of the application and at the latest when the time for the start is over. After
// a signal it goes on until the end of the stop.
type startWatch struct {
	run, rush  context.Context //nolint:containedctx // ended by the first and by the second signal
	quit, done chan struct{}   // ends the watch; closed when it has ended
}

func watchSignals(ctx context.Context, h *Hosted) *startWatch {
	run, end := context.WithCancelCause(ctx)
	rush, hurry := context.WithCancel(context.WithoutCancel(ctx))
	w := &startWatch{run: run, rush: rush, quit: make(chan struct{}), done: make(chan struct{})}
	signals := make(chan os.Signal, 2)
	silence := h.notify(signals)
	var seen stopSignals
	over := ctx.Done()
	begin := func() {
		end(errSignal)
		over = nil
		h.down()
	}
	if h.early.end() {
		seen.next(time.Now())
		begin()
	}
	go func() {
		defer close(w.done)
		defer end(nil)
		defer silence()
		for {
			select {
			case <-signals:
				switch seen.next(time.Now()) {
				case stopSame:
				case stopBegins:
					begin()
				case stopRushes, stopNow:
					hurry()
					return
				}
			case <-over:
				return
			case <-w.quit:
				return
			}
		}
	}()
	return w
}

// end ends the watch.
func (w *startWatch) end() {
	close(w.quit)
	<-w.done
}
