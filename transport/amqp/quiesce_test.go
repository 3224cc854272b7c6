package amqp_test

import (
	"slices"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// A queue that does not answer is no reason for a stop to wait, and a consumer that is
// not cancelled none to lose the order: nothing goes back before the cancel is confirmed
// or the channel closes, whatever is given back when, and whether Cancel had its time. F-A06
func TestCancelOfASilentQueueKeepsTheOrder(t *testing.T) {
	for name, x := range map[string]struct {
		flavor amqptest.Flavor
		resume bool // before the close
		short  bool // a Cancel that ends too early
		late   bool // a Cancel that is not even tried
	}{
		"4.3": {flavor: amqptest.V4_3}, "3.10": {flavor: amqptest.V3_10},
		"4.3, it comes back": {flavor: amqptest.V4_3, resume: true}, "3.10, it comes back": {flavor: amqptest.V3_10, resume: true},
		"4.3, no time": {flavor: amqptest.V4_3, resume: true, short: true}, "4.3, not tried": {flavor: amqptest.V4_3, resume: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embeddedSite(t, amqptest.Config{Flavor: x.flavor})
			queue := s.declare(t, amqp.Quorum, nil)
			s.publish(t, queue, numbered(100)...)
			c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{Window: 16, MaxWindow: 16, Ordered: true})
			ds := c.take(10)
			eventually(t, "all are here", func() bool { return unacked(s, queue) == 100 })
			c.ack(ds[:5]...)
			c.must("Flush", c.Flush)
			s.embedded.Suspend("/", queue)
			s.publish(t, queue, numbered(150)[100:]...)
			s.embedded.ResetMethods()
			if x.short || x.late {
				ctx, cancel := within(10 * time.Millisecond)
				if x.late {
					cancel()
				}
				wants(t, "Cancel", c.Cancel(ctx), longshore.CodeTimeout)
				cancel()
			} else {
				c.must("Cancel", c.Cancel)
			}
			for _, d := range ds[5:] {
				if err := d.Nack(t.Context(), 0); err != nil {
					t.Error(err)
				}
			}
			c.must("Release", c.Release)
			if x.resume {
				s.embedded.Resume("/", queue)
			}
			c.must("Flush", c.Flush)
			c.close()
			s.embedded.Resume("/", queue)
			if got := s.left(t, queue); !slices.Equal(got, numbered(150)[5:]) {
				t.Errorf("left %q", got)
			}
			canceled := at(s, "basic.cancel")
			if !x.resume && canceled >= 0 {
				t.Error("the cancel would wait for the queue")
			}
			for _, back := range []string{"basic.nack", "basic.reject"} {
				if n := at(s, back); n >= 0 && (canceled < 0 || n < canceled) {
					t.Errorf("%s is method %d, basic.cancel %d", back, n, canceled)
				}
			}
		})
	}
}

// at is the place of the first such method among those since ResetMethods, -1 if there
// was none.
func at(s *site, name string) int {
	return slices.IndexFunc(s.embedded.Methods(), func(m amqptest.MethodEvent) bool { return m.Name == name })
}

// A pause of a queue that does not answer ends, and the consumer is cancelled when the
// queue is back. F-A06
func TestPauseOfASilentQueue(t *testing.T) {
	t.Parallel()
	s := embeddedSite(t, amqptest.Config{Flavor: amqptest.V4_3})
	queue := s.declare(t, amqp.Quorum, nil)
	c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{Window: 16, MaxWindow: 16, Ordered: true})
	s.embedded.Suspend("/", queue)
	c.must("Pause", as[transport.Pauser](t, c.Consumer).Pause)
	if at(s, "basic.cancel") >= 0 {
		t.Error("it would wait for the queue")
	}
	s.embedded.Resume("/", queue)
	eventually(t, "the consumer is cancelled", func() bool { return at(s, "basic.cancel") >= 0 })
	s.publish(t, queue, numbered(3)...)
	c.must("Resume", as[transport.Pauser](t, c.Consumer).Resume)
	c.ack(c.take(3)...)
	c.close()
}

// What the broker says in the place of a queue that does not answer is not what the
// queue holds. F-L04
func TestSilenceIsNotEmptiness(t *testing.T) {
	t.Parallel()
	s := embeddedSite(t, amqptest.Config{Flavor: amqptest.V4_3})
	queue := s.declare(t, amqp.Quorum, nil)
	src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{BrowseCounts: true})
	c := open(t, src, transport.OpenOptions{Window: 16, MaxWindow: 16})
	backlog := as[transport.Backlogger](t, c.Consumer).Backlog
	depth := as[transport.DepthReader](t, src).Depth
	ask := func(want error) {
		t.Helper()
		_, _, err := backlog(t.Context())
		wants(t, "Backlog", err, want)
		_, err = depth(t.Context())
		wants(t, "Depth", err, want)
	}
	ask(nil)
	s.embedded.Suspend("/", queue)
	ask(longshore.CodeTimeout)
	_, _, err := as[transport.Browser](t, src).Browse(t.Context(), "", 10)
	wants(t, "Browse", err, longshore.CodeTimeout)
	s.embedded.Resume("/", queue)
	ask(nil)
	s.embedded.Delay(answeredLate) // far away is not silent
	ask(nil)
	s.embedded.Delay(0)
	c.close()
}

const answeredLate = 220 * time.Millisecond
