package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/fx"
)

// undoMost is what is kept of a start's time to undo it, where a quarter is more.
const undoMost = 5 * time.Second

// fxHook is the one hook of an fx application that starts and stops the components.
type fxHook struct {
	m      *Manager
	down   fx.Shutdowner
	notify func(chan<- os.Signal) (stop func())

	watching *fxWatch // from the start on
}

func notifySignals(c chan<- os.Signal) (stop func()) {
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return func() { signal.Stop(c) }
}

// errSignal is the cause of a start that a signal ended.
var errSignal = errors.New("a signal ended the start")

// start keeps a part of the time that fx gives a start for undoing it. fx does not wait
// for a hook whose time is over and calls no stop of it; App.Run then ends the process
// (uber-go/fx #767, #1035).
//
// A signal ends the start, and start returns nil with fx asked to shut down: App.Run then
// calls stop, which has the whole StopTimeout to drain what had started, and exits with 0
// if nothing is left behind. With an error it would exit with 1 in any case.
func (h *fxHook) start(ctx context.Context) error {
	w := watchSignals(ctx, h.notify, h.down)
	how := undoing{keep: func() bool { return errors.Is(context.Cause(w.run), errSignal) }}
	early := w.run
	if end, ok := ctx.Deadline(); ok {
		kept := min(time.Until(end)/4, undoMost)
		limited, cancel := context.WithDeadline(early, end.Add(-kept))
		defer cancel()
		early, how.by = limited, end.Add(-kept/8) // fx prefers its own error, without a name, to one that comes late
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

// stop ends before the time that fx gives a stop, for the same reason: behind its
// limit fx says that it is over, and nobody hears who did not stop.
func (h *fxHook) stop(ctx context.Context) error {
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

// fxWatch obeys signals from the start until fx itself looks after them, which is after
// the last start hook of the application, so at the latest when the time for the start is
// over. After a signal it goes on until the end of the stop.
type fxWatch struct {
	run, rush  context.Context //nolint:containedctx // ended by the first and by the second signal
	quit, done chan struct{}
}

func watchSignals(ctx context.Context, notify func(chan<- os.Signal) func(), down fx.Shutdowner) *fxWatch {
	run, end := context.WithCancelCause(ctx)
	rush, hurry := context.WithCancel(context.WithoutCancel(ctx))
	w := &fxWatch{run: run, rush: rush, quit: make(chan struct{}), done: make(chan struct{})}
	signals := make(chan os.Signal, 2)
	silence := notify(signals)
	go func() {
		defer close(w.done)
		defer end(nil)
		defer silence()
		over := ctx.Done()
		for seen := 0; seen < 2; {
			select {
			case <-signals:
				if seen++; seen == 2 {
					hurry()
					continue
				}
				end(errSignal)
				over = nil
				// fx remembers it for App.Wait. Its error says that another signal is there already.
				_ = down.Shutdown()
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
func (w *fxWatch) end() {
	close(w.quit)
	<-w.done
}
