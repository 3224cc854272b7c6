package amqp_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// A paused consumer keeps its role and what it has; the one that stands by neither
// gets anything nor believes that it is the active one.
func TestPauseKeepsTheRole(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			queue := transporttest.Name(t)
			src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{SingleActive: true, Prefetch: 5, Declare: amqp.Declare{Type: kind}})
			active := open(t, src, transport.OpenOptions{})
			standby := open(t, src, transport.OpenOptions{})
			if caps := as[transport.CapabilityReporter](t, active.Consumer).Capabilities(); !caps.KeepsPlace {
				t.Errorf("%s: capabilities %+v", kind, caps)
			}
			s.publish(t, queue, "m0000")
			first := active.take(1)
			active.must("Pause", as[transport.Pauser](t, active.Consumer).Pause)
			s.publish(t, queue, numbered(20)[1:]...)
			for c, who := range map[*sub]string{active: "the paused one", standby: "the other"} {
				ctx, cancel := within(200 * time.Millisecond)
				ds, err := c.Receive(ctx, 1)
				cancel()
				if len(ds) > 0 {
					t.Errorf("%s: %s received %q", kind, who, ds[0].Body)
				}
				wants(t, "Receive", err, context.DeadlineExceeded)
			}
			if _, _, err := as[transport.Backlogger](t, standby.Consumer).Backlog(t.Context()); err != nil || standby.heard(transport.EventActive) {
				t.Errorf("%s: the standby takes itself for the active one; %v", kind, err)
			}
			active.ack(first...)
			active.must("Resume", as[transport.Pauser](t, active.Consumer).Resume)
			for n := 1; n < 20; n++ {
				d := active.take(1)
				if got := string(d[0].Body); got != fmt.Sprintf("m%04d", n) {
					t.Fatalf("%s: received %s as number %d", kind, got, n)
				}
				active.ack(d...)
			}
			active.close()
			standby.close()
		}
	})
}

// An active consumer that is closed without a cancel before hands on the role and what
// it has in one: the next one gets all in order.
func TestCloseHandsTheRoleOnInOrder(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			queue := transporttest.Name(t)
			src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{SingleActive: true, Declare: amqp.Declare{Type: kind}})
			active := open(t, src, transport.OpenOptions{Ordered: true, Window: 16, MaxWindow: 16})
			standby := open(t, src, transport.OpenOptions{Ordered: true, Window: 16, MaxWindow: 16})
			s.publish(t, queue, numbered(100)...)
			held := active.take(10)
			active.ack(held[:5]...)
			active.close()
			for n := 5; n < 100; n++ {
				d := standby.take(1)
				if got := string(d[0].Body); got != fmt.Sprintf("m%04d", n) {
					t.Fatalf("%s: received %s as number %d", kind, got, n)
				}
				standby.ack(d...)
			}
			standby.close()
		}
	})
}
