package cli

import (
	"context"
	"os"
	"sync"
)

// Interrupts turns signals into contexts: Soft ends at the first signal, Hard at
// the second; the cause of both is an *Interrupted.
type Interrupts struct {
	Soft, Hard context.Context //nolint:containedctx // to hand them out is what it is for
	quit       chan struct{}
	gone       sync.WaitGroup
	endSoft    context.CancelCauseFunc
	end        func()
}

// Watch listens until Stop is called.
func Watch(signals <-chan os.Signal) *Interrupts {
	hard, endHard := context.WithCancelCause(context.Background())
	soft, endSoft := context.WithCancelCause(hard)
	w := &Interrupts{Soft: soft, Hard: hard, endSoft: endSoft, quit: make(chan struct{})}
	w.end = sync.OnceFunc(func() {
		close(w.quit)
		w.gone.Wait()
		endHard(context.Canceled)
		endSoft(context.Canceled)
	})
	w.gone.Go(func() {
		for _, end := range []context.CancelCauseFunc{endSoft, endHard} {
			select {
			case s := <-signals:
				end(&Interrupted{Signal: s})
			case <-w.quit:
				return
			}
		}
	})
	return w
}

// Cause is the *Interrupted of the last signal, nil if there was none.
func (w *Interrupts) Cause() error {
	if err := context.Cause(w.Hard); err != nil {
		return err
	}
	return context.Cause(w.Soft)
}

// Stop ends the watching and both contexts.
func (w *Interrupts) Stop() { w.end() }
