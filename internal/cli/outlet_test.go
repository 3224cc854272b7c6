package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
)

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestAReaderWhoLeftEndsTheJob(t *testing.T) {
	w := Watch(nil)
	defer w.Stop()
	full := w.Outlet(broken{syscall.ENOSPC})
	if _, err := io.WriteString(full, "x"); !errors.Is(err, syscall.ENOSPC) || full.Gone() || w.Soft.Err() != nil {
		t.Errorf("a full disk is an error: %v", err)
	}
	out := w.Outlet(broken{&os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}})
	if _, err := io.WriteString(out, "x"); !errors.Is(err, ErrGone) || errors.Is(err, syscall.EPIPE) || !out.Gone() {
		t.Errorf("%v, gone %v", err, out.Gone())
	}
	if w.Soft.Err() == nil || w.Hard.Err() != nil || ExitCode(w.Cause()) != 141 {
		t.Errorf("cause %v, code %d", w.Cause(), ExitCode(w.Cause()))
	}
}

func TestWithoutGone(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct{ in, want error }{
		{nil, nil}, {other, other}, {ErrGone, nil}, {fmt.Errorf("show: %w", ErrGone), nil}, {errors.Join(ErrGone, ErrGone), nil},
	} {
		if got := WithoutGone(c.in); !errors.Is(got, c.want) || (c.want == nil) != (got == nil) {
			t.Errorf("%v: %v", c.in, got)
		}
	}
	if got := WithoutGone(errors.Join(ErrGone, other)); !errors.Is(got, other) || errors.Is(got, ErrGone) {
		t.Errorf("%v", got)
	}
}
