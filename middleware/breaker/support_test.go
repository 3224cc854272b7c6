package breaker_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/longshore-go/longshore/transport"
)

// consumers asks RabbitMQ itself. The number that a passive declaration of a quorum
// queue gives counts a cancelled consumer until its last delivery is settled; the
// list does not.
func consumers(t *testing.T, amqpURL string) int {
	t.Helper()
	u, err := url.Parse(amqpURL)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), os.Getenv("RABBITMQCTL"), "-q", "--no-table-headers", "list_consumers", "-p", u.Path[1:]).Output()
	if err != nil {
		t.Fatal(err)
	}
	return len(strings.Fields(string(out)))
}

// counted counts the consumers of a source that fetch: open, not cancelled and not
// paused.
type counted struct {
	transport.Source
	open atomic.Int32
}

func (s *counted) gone() bool { return s.open.Load() == 0 }

func (s *counted) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s.open.Add(1)
	return &countedConsumer{Consumer: c, s: s}, nil
}

func (s *counted) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	out, ok := s.Source.(transport.Outlet)
	if !ok {
		return nil, "", errors.ErrUnsupported
	}
	return out.Publisher(ctx)
}

func (s *counted) Describe() transport.Description {
	d, ok := s.Source.(transport.Describer)
	if !ok {
		return transport.Description{}
	}
	return d.Describe()
}

type countedConsumer struct {
	transport.Consumer
	s        *counted
	canceled atomic.Bool
	paused   atomic.Bool
}

func (c *countedConsumer) end() {
	if c.canceled.CompareAndSwap(false, true) && !c.paused.Load() {
		c.s.open.Add(-1)
	}
}

func (c *countedConsumer) Pause(ctx context.Context) error {
	err := c.Consumer.(transport.Pauser).Pause(ctx) //nolint:errcheck // all of ours can be paused
	if c.paused.CompareAndSwap(false, true) {
		c.s.open.Add(-1)
	}
	return err
}

func (c *countedConsumer) Resume(ctx context.Context) error {
	if c.paused.CompareAndSwap(true, false) {
		c.s.open.Add(1)
	}
	return c.Consumer.(transport.Pauser).Resume(ctx) //nolint:errcheck // all of ours can be paused
}

func (c *countedConsumer) Cancel(ctx context.Context) error {
	err := c.Consumer.Cancel(ctx)
	c.end()
	return err
}

func (c *countedConsumer) Close(ctx context.Context) error {
	c.end()
	return c.Consumer.Close(ctx)
}
