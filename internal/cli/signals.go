package cli

import (
	"context"
	"os"
	"sync"
)

// Interrupts turns signals into contexts: Soft ends at the first signal, Hard at
// the second; the cause of both is an *Interrupted.
type Interrupts struct {
	Soft, Hard context.Context
	quit       chan struct{}
	gone       sync.WaitGroup
	end        func()
}

// Watch listens until Stop is called.
func Watch(signals <-chan os.Signal) *Interrupts {
	hard, endHard := context.WithCancelCause(context.Background())
	soft, endSoft := context.WithCancelCause(hard)
	w := &Interrupts{Soft: soft, Hard: hard, quit: make(chan struct{})}
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

// Stop ends the watching and both contexts.
func (w *Interrupts) Stop() { w.end() }
