package cluster

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

// Which failures of a dial pass, and stay what they are for everybody else. F-N08
func TestPassingDials(t *testing.T) {
	t.Parallel()
	refusedDial := func(n syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", n)}
	}
	for name, c := range map[string]struct {
		err     error
		passing bool
	}{
		"refused":             {refusedDial(syscall.ECONNREFUSED), true},
		"no route":            {refusedDial(syscall.EHOSTUNREACH), true},
		"no network":          {refusedDial(syscall.ENETUNREACH), true},
		"name server away":    {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, true},
		"no such name":        {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}, false},
		"forbidden":           {refusedDial(syscall.EACCES), false},
		"a read":              {&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, false},
		"none of the net's":   {errors.New("no token"), false},
		"timed out by itself": {&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, false},
	} {
		got := passing(c.err)
		if changed := got != c.err; changed != c.passing { //nolint:errorlint // the same one
			t.Errorf("%s: changed %v, want %v", name, changed, c.passing)
		}
		if got.Error() != c.err.Error() && name != "name server away" {
			t.Errorf("%s: says %q, said %q", name, got, c.err)
		}
		var op *net.OpError
		if c.passing && (!errors.As(got, &op) || !op.Timeout() || op.Op != "dial") {
			t.Errorf("%s: %#v is no dial that timed out", name, got)
		}
	}
	if !errors.Is(passing(refusedDial(syscall.ECONNREFUSED)), syscall.ECONNREFUSED) {
		t.Error("a refused dial is not refused any more")
	}
}
