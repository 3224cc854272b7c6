package amqp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// Instances of different sizes take a queue over one after the other, and each has
// something in hand when it ends. A quorum queue lines returned messages up behind those
// that were returned before and not sent since, so the second instance has to have all
// of them in hand.
//
// F-N35
func TestOrderHoldsOverSuccessiveHandOvers(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			for _, single := range []bool{true, false} {
				for _, end := range []string{"stopped", "cut"} {
					t.Run(fmt.Sprintf("%s single=%t %s", kind, single, end), func(t *testing.T) { handOverTwice(t, s, kind, single, end) })
				}
			}
		}
	})
}

func handOverTwice(t *testing.T, s *site, kind amqp.QueueType, single bool, end string) {
	const total = 140
	queue := transporttest.Name(t)
	src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{SingleActive: single, Declare: amqp.Declare{Type: kind}})
	open(t, src, transport.OpenOptions{}).close() // declares it
	s.publish(t, queue, numbered(total)...)
	for _, size := range []int{128, 4, 16, 4} {
		c := reopen(t, src, transport.OpenOptions{Ordered: true, Window: size, MaxWindow: size})
		c.take(min(size, 20))
		if end == "cut" {
			s.proxy.CutAll()
			eventually(t, "the loss is noticed", func() bool { return c.down() != nil })
			eventually(t, "the queue has taken all back", func() bool { return s.ready(t, queue) == total })
		}
		c.close()
	}
	last := open(t, src, transport.OpenOptions{Ordered: true, Window: 128, MaxWindow: 128})
	for n := range total {
		d := last.take(1)
		if got := string(d[0].Body); got != fmt.Sprintf("m%04d", n) {
			t.Fatalf("received %s as number %d", got, n)
		}
		last.ack(d...)
	}
	last.close()
}

// An order that is not kept over any number of hand-overs is said to be limited, once,
// at the start.
//
// F-N35
func TestStartSaysWhereTheOrderIsLimited(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	quorum, classic := amqp.Declare{Type: amqp.Quorum}, amqp.Declare{Type: amqp.Classic}
	for _, c := range []struct {
		name string
		cfg  amqp.QueueConfig
		o    transport.OpenOptions
		want string // a part of the notice; "" if there is none
	}{
		{"the shared window", amqp.QueueConfig{Declare: quorum}, transport.OpenOptions{Ordered: true, MaxWindow: 128}, ""},
		{"single active", amqp.QueueConfig{SingleActive: true, Declare: quorum}, transport.OpenOptions{Ordered: true, MaxWindow: 4}, ""},
		{"no order", amqp.QueueConfig{Prefetch: 20, Declare: quorum}, transport.OpenOptions{MaxWindow: 4}, ""},
		{"a classic queue", amqp.QueueConfig{Prefetch: 20, Declare: classic}, transport.OpenOptions{Ordered: true, MaxWindow: 4}, ""},
		{"a prefetch", amqp.QueueConfig{Prefetch: 20, Declare: quorum}, transport.OpenOptions{Ordered: true, MaxWindow: 4}, "the same Prefetch; this one has 20"},
		{"many workers", amqp.QueueConfig{Declare: quorum}, transport.OpenOptions{Ordered: true, MaxWindow: 300}, "the same window; this one has 1000"},
		{"pull", amqp.QueueConfig{Pull: true, Declare: quorum}, transport.OpenOptions{Ordered: true, MaxWindow: 4}, "Leave Pull out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := amqp.New(s.url, amqp.Config{}).Queue(transporttest.Name(t), c.cfg)
			one := open(t, src, c.o)
			one.close()
			again := open(t, src, c.o)
			again.close()
			if again.heard(transport.EventNotice) {
				t.Error("told again at the next opening")
			}
			if got := one.heard(transport.EventNotice); got != (c.want != "") {
				t.Errorf("told of a limit: %t, want %t", got, c.want != "")
			}
			for _, e := range one.events {
				if e.Kind == transport.EventNotice && !strings.Contains(e.Text, c.want) {
					t.Errorf("the notice is %q, want one with %q", e.Text, c.want)
				}
			}
		})
	}
}

// Messages that wait unstarted in the shared window until the broker takes them back
// would be taken back again and again, each time as a delivery that counts. The window
// follows the workers from then on.
//
// F-N35
func TestSharedWindowGivesWayToTheAckTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		handlerHangs bool
		want         int // what is out at the next opening
	}{
		"slow handlers":  {false, 4},
		"one that hangs": {true, 250},
	} {
		t.Run(name, func(t *testing.T) {
			s := embeddedSite(t, amqptest.Config{})
			s.embedded.SetConsumerTimeout(400 * time.Millisecond)
			queue := s.declare(t, amqp.Quorum, amqp091.Table{"x-single-active-consumer": true})
			src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{SingleActive: true})
			o := transport.OpenOptions{Ordered: true, Window: 4, MaxWindow: 4}
			slow := open(t, src, o)
			s.publish(t, queue, "first")
			slow.take(1) // and no ack
			if !c.handlerHangs {
				s.publish(t, queue, numbered(300)...)
			}
			for n := 0; slow.down() == nil; n++ { // the others come and go
				if c.handlerHangs {
					s.publish(t, queue, "x")
					if n > 0 && slow.down() == nil {
						take(slow)
					}
				}
			}
			wants(t, "Down", slow.down(), longshore.CodeAckTimeout)
			slow.close()
			s.embedded.SetConsumerTimeout(time.Hour)
			if c.handlerHangs {
				s.publish(t, queue, numbered(300)...)
			}
			next := open(t, src, o)
			eventually(t, "the window is full", func() bool { return unacked(s, queue) >= c.want })
			still(t, 100*time.Millisecond, "no more comes", func() bool { return unacked(s, queue) == c.want })
			if slow.heard(transport.EventNotice) == c.handlerHangs {
				t.Errorf("told of a limit: %t", !c.handlerHangs)
			}
			next.close()
		})
	}
}

// take settles one, if there is one.
func take(s *sub) {
	ctx, cancel := within(20 * time.Millisecond)
	defer cancel()
	if ds, err := s.Receive(ctx, 1); err == nil {
		_ = ds[0].Ack(ctx)
	}
}
