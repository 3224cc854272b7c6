package kafka

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A classic group's heartbeat that cannot connect ends the session in the client, at once,
// though the broker waits for the session timeout: what is out would be lost and repeated for
// a restart of a second. A dial that timed out does not: the client tries those again until
// the session timeout is over. So while there is a session, a refused dial is shown to the
// client as one that timed out.

// dialer is what kgo.Dialer takes.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// keepingSession are options of a client whose failed dials end no session while one lasts.
// They come after all others.
func (b *Broker) keepingSession(lasts func() bool) ([]kgo.Opt, error) {
	// The client's own dialer, or the user's: only a client shows it. It connects to nothing.
	plain, err := kgo.NewClient(append(b.options(), kgo.DisableClientMetrics())...)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	dial, ok := plain.OptValue(kgo.Dialer).(dialer)
	if !ok {
		return nil, errors.New("the client has no dialer")
	}
	return []kgo.Opt{kgo.DialTLSConfig(nil), kgo.Dialer(patient(dial, lasts))}, nil // its handshake is in the dialer
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

// passing is a failure to dial as the client tries it again. Others stay: those that no trial
// cures (a name that does not exist, a forbidden socket), and those that are no dial's.
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

// passingError says of an error what it says, and that it is a timeout.
type passingError struct{ error }

// Timeout implements net.Error.
func (e *passingError) Timeout() bool { return true }

// Unwrap gives the error itself.
func (e *passingError) Unwrap() error { return e.error }

// inSession says that partitions are held in a classic group. The consumer protocol's session
// outlasts failed requests by itself.
func (c *consumer) inSession() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.src.cfg.Protocol == Classic && len(c.parts) > 0 && !c.leaving && c.end == nil
}
