package lifecycle

import (
	"os"
	"sync"
	"time"
)

// earlySignals catches a signal that comes before the components start, while the framework
// runs the start hooks of others. It cannot end those hooks, but it keeps the signal from
// killing the process in the middle of them, and the start of the components sees it. After
// the first signal it lets further ones kill the process as usual, so that a hook that hangs
// can still be ended.
type earlySignals struct {
	notify func(chan<- os.Signal) (stop func()) // subscribes to the process's signals

	begun, ended sync.Once     // each step happens once, and begin after end does nothing
	quit         chan struct{} // ends the goroutine; nil: it never ran
	done         chan struct{} // closed when it has ended
	seen         bool          // a signal has come; to be read after done
}

// begin subscribes.
func (e *earlySignals) begin() {
	e.begun.Do(func() {
		signals := make(chan os.Signal, 1)
		silence := e.notify(signals)
		e.quit, e.done = make(chan struct{}), make(chan struct{})
		go func() {
			defer close(e.done)
			defer silence()
			e.watch(signals)
		}()
	})
}

// watch waits for a signal, and then until the next one would be another request.
func (e *earlySignals) watch(signals <-chan os.Signal) {
	select {
	case <-signals:
		e.seen = true
	case <-e.quit:
		return
	}
	same := time.NewTimer(sameStop)
	defer same.Stop()
	select {
	case <-same.C:
	case <-e.quit:
	}
}

// end unsubscribes and says whether a signal has come.
func (e *earlySignals) end() (seen bool) {
	e.begun.Do(func() {})
	if e.quit == nil {
		return false
	}
	e.ended.Do(func() { close(e.quit) })
	<-e.done
	return e.seen
}
