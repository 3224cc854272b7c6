package cli

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"
)

// ErrGone is what writes return once the reader has closed the stream: head has had
// enough, or a pager was left.
var ErrGone = errors.New("longshore: the reader of the output is gone")

// Outlet is a stream whose reader may go away. That ends the job as a first signal
// does, with the exit code of other tools, 141; running work is finished.
type Outlet struct {
	to   io.Writer
	end  func()
	gone atomic.Bool
}

// Outlet wraps a stream. SIGPIPE must be ignored, else it ends the process first.
func (w *Interrupts) Outlet(to io.Writer) *Outlet {
	return &Outlet{to: to, end: func() { w.endSoft(&Interrupted{Signal: syscall.SIGPIPE}) }}
}

// Write returns ErrGone when the reader went away. A broken pipe to a broker is
// another error: it does not come from here.
func (o *Outlet) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		o.gone.Store(true)
		o.end()
		err = ErrGone
	}
	return n, err
}

// Gone reports whether a write was in vain.
func (o *Outlet) Gone() bool { return o.gone.Load() }

// WithoutGone leaves ErrGone out of joined errors: it is no mistake to report.
func WithoutGone(err error) error {
	joined, ok := err.(interface{ Unwrap() []error }) // only what errors.Join made
	switch {
	case !errors.Is(err, ErrGone):
		return err
	case !ok:
		return nil
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		rest = append(rest, WithoutGone(e))
	}
	return errors.Join(rest...)
}
