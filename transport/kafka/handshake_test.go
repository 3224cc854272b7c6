package kafka_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka"
)

// shortConn brings so many answers, then its end.
type shortConn struct {
	net.Conn
	left int
	end  error
}

func (c *shortConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		_ = c.Close()
		return 0, c.end
	}
	c.left--
	return c.Conn.Read(p)
}

// cutAfter makes the first connections end after so many answers.
func cutAfter(answers int, first int32, end error) kgo.Opt {
	var dials atomic.Int32
	return kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil || dials.Add(1) > first {
			return conn, err
		}
		return &shortConn{conn, answers, end}, nil
	})
}

// The first two connections end within the handshake, wherever that is: a login that is
// refused is told as such all the same, to whoever consumes and to whoever publishes,
// and one that is right gets through.
func TestLinkCutWithinTheHandshake(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "right"))
	for answers := range 3 { // to ApiVersions, the handshake and the login
		for _, end := range []error{io.EOF, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}} {
			broker := func(password string) *kafka.Broker {
				return kafka.New(c.ListenAddrs(), kafka.Config{SASL: plain("app", password), Options: []kgo.Opt{cutAfter(answers, 2, end)}})
			}
			if err := probe(t, broker("wrong")); !errors.Is(err, longshore.CodeAuth) {
				t.Errorf("cut after %d answers by %v, with a wrong password: %v", answers, end, err)
			}
			if err := probe(t, broker("right")); err != nil {
				t.Errorf("cut after %d answers by %v: %v", answers, end, err)
			}
			p := publisher(t, broker("wrong"), kafka.PublisherConfig{})
			if err := p.Publish(t.Context(), "orders", messages("a")...); !errors.Is(err, longshore.CodeAuth) {
				t.Errorf("cut after %d answers by %v, publishing with a wrong password: %v", answers, end, err)
			}
		}
	}
}

// Who is hung up on each time hears of it soon.
func TestLinkCutWithinEachHandshake(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.SeedTopics(1, "orders"))
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	began := time.Now()
	err := probe(t, kafka.New(c.ListenAddrs(), kafka.Config{Options: []kgo.Opt{cutAfter(0, 1000, reset)}}))
	if !errors.Is(err, longshore.CodeUnreachable) {
		t.Error(err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("it was told after %s", took)
	}
}

// probe looks as an opening does.
func probe(t *testing.T, b *kafka.Broker) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return b.Group("g", []string{"orders"}, kafka.GroupConfig{}).Probe(ctx)
}
