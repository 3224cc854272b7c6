package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A classic group's heartbeat that cannot connect ends the session in the client at once
// (franz-go v1.22.3 repeats no dial error but a timeout, on purpose:
// https://github.com/twmb/franz-go/blob/v1.22.3/pkg/kgo/errors.go#L59), although the broker
// waits for the session timeout: a restart of one second would lose and repeat everything
// in hand. A dial that timed out is repeated until the session timeout is over. So while
// there is a session, a refused dial is shown to the client as one that timed out.

// dialer is what kgo.Dialer takes.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Own is what a client without a group shows of its options, its own defaults included.
type Own struct {
	dial      dialer              // the dialer that its connections use
	balancers []kgo.GroupBalancer // wrapped to watch the joins of the client
}

// Options reads the dialer and the balancers that a client with these options has: only a
// client shows them.
func Options(opts []kgo.Opt) (Own, error) {
	// This one connects to nothing.
	plain, err := kgo.NewClient(append(opts[:len(opts):len(opts)], kgo.DisableClientMetrics())...)
	if err != nil {
		return Own{}, err
	}
	defer plain.Close()
	var own Own
	var known bool
	if own.dial, known = plain.OptValue(kgo.Dialer).(dialer); !known {
		return Own{}, errors.New("the client has no dialer")
	}
	if own.balancers, known = plain.OptValue(kgo.Balancers).([]kgo.GroupBalancer); !known {
		return Own{}, errors.New("the client has no balancers")
	}
	return own, nil
}

// KeepSession returns options of a client whose failed dials end no session while one
// lasts. They come after the client's others.
func (o Own) KeepSession(lasts func() bool) []kgo.Opt {
	return []kgo.Opt{kgo.DialTLSConfig(nil), kgo.Dialer(patient(o.dial, lasts))} // the handshake is in the dialer
}

// patient shows passing failures of a dial as timeouts, while lasts.
func patient(dial dialer, lasts func() bool) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil || !lasts() {
			return conn, err
		}
		return nil, passing(err)
	}
}

// passing turns a failed dial into one that the client repeats. Other errors stay as they
// are: those that no repetition cures (a name that does not exist, a forbidden socket), and
// those of anything but a dial.
func passing(err error) error {
	var op *net.OpError
	var name *net.DNSError
	switch {
	case !errors.As(err, &op) || op.Op != "dial" || op.Timeout():
		return err
	case errors.As(err, &name) && name.IsNotFound, errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return err
	}
	call, why := "connect", op.Err
	var sys *os.SyscallError
	if errors.As(op.Err, &sys) {
		call, why = sys.Syscall, sys.Err
	}
	return &net.OpError{Op: op.Op, Net: op.Net, Source: op.Source, Addr: op.Addr, Err: &os.SyscallError{Syscall: call, Err: &passingError{why}}}
}

// passingError has the text of an error and claims to be a timeout.
type passingError struct{ error }

// Timeout implements net.Error.
func (e *passingError) Timeout() bool { return true }

// Unwrap returns the error itself.
func (e *passingError) Unwrap() error { return e.error }
