package amqptest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// ledger counts what was confirmed and what was acknowledged, by body.
type ledger struct {
	mu               sync.Mutex
	confirmed, acked map[string]int
}

func (l *ledger) note(m map[string]int, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m[body]++
}

// TestNothingIsLostWhileEverythingBreaks: publishers with confirms and consumers
// that ack, nack, reject and die, connections that are cut and blocked all the
// time. At the end every confirmed message was acknowledged, is in the queue or
// in the dead-letter queue, and the queue's counts are those of its lists.
func TestNothingIsLostWhileEverythingBreaks(t *testing.T) {
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			s := New(t)
			setup := dial(t, s.URL)
			ch := open(t, setup)
			declare(t, ch, "dead", nil)
			declare(t, ch, "q", toDead(amqp091.Table{"x-queue-type": kind}))
			_ = setup.Close()
			l := &ledger{confirmed: map[string]int{}, acked: map[string]int{}}
			ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
			defer stop()
			var wg sync.WaitGroup
			for i := range 2 {
				wg.Go(func() { publishUntil(ctx, s.URL, fmt.Sprint(i), l) })
				wg.Go(func() { consumeUntil(ctx, s.URL, l) })
			}
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				<-tick.C
				s.breakSomething(i)
			}
			s.Unblock()
			wg.Wait()
			s.Cut(nil)
			s.account(t, l)
		})
	}
}

func (s *Server) breakSomething(i int) {
	some := func(ConnInfo) bool { return rand.IntN(2) == 0 }
	switch i % 5 {
	case 0:
		s.Cut(some)
	case 1:
		s.Block("test")
	case 2:
		s.Unblock()
	case 3:
		s.CloseChannels(406, "test", func(c ConnInfo, _ ChannelInfo) bool { return some(c) })
	case 4:
		s.CutReset(some)
	}
}

func publishUntil(ctx context.Context, url, id string, l *ledger) {
	for n := 0; ctx.Err() == nil; {
		conn, err := amqp091.Dial(url)
		if err != nil {
			continue
		}
		ch, err := conn.Channel()
		if err == nil {
			err = ch.Confirm(false)
		}
		for ; err == nil && ctx.Err() == nil; n++ {
			body := fmt.Sprint(id, "-", n)
			var dc *amqp091.DeferredConfirmation
			dc, err = ch.PublishWithDeferredConfirmWithContext(ctx, "", "q", false, false, text(body))
			if err != nil {
				break
			}
			wait, cancel := context.WithTimeout(context.Background(), patience)
			if ok, werr := dc.WaitContext(wait); ok && werr == nil {
				l.note(l.confirmed, body)
			}
			cancel()
		}
		_ = conn.CloseDeadline(time.Now().Add(time.Second))
	}
}

func consumeUntil(ctx context.Context, url string, l *ledger) {
	for ctx.Err() == nil {
		conn, err := amqp091.Dial(url)
		if err != nil {
			continue
		}
		if ch, err := conn.Channel(); err == nil {
			_ = ch.Qos(20, 0, false)
			ds, err := ch.Consume("q", "", false, false, false, false, nil)
			for err == nil && ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case d, ok := <-ds:
					if !ok {
						err = amqp091.ErrClosed
						break
					}
					settleSomehow(d, l)
				}
			}
		}
		_ = conn.CloseDeadline(time.Now().Add(time.Second))
	}
}

func settleSomehow(d amqp091.Delivery, l *ledger) {
	switch rand.IntN(6) {
	case 0:
		_ = d.Nack(false, true)
	case 1:
		_ = d.Reject(rand.IntN(2) == 0)
	case 2: // held until the channel ends
	default:
		l.note(l.acked, string(d.Body)) // before: an ack may arrive although Ack failed
		_ = d.Ack(false)
	}
}

// account compares the ledger with the queues and the queues with themselves.
func (s *Server) account(t *testing.T, l *ledger) {
	t.Helper()
	left := map[string]bool{}
	for _, name := range []string{"q", "dead"} {
		got := s.Messages("/", name)
		info, _ := s.Queue("/", name)
		if info.Ready != len(got) || info.Unacked != 0 || len(info.Consumers) != 0 {
			t.Errorf("%s: ready %d, holds %d, unacked %d, consumers %d", name, info.Ready, len(got), info.Unacked, len(info.Consumers))
		}
		for _, m := range got {
			if left[string(m.Body)] {
				t.Errorf("%s is there twice", m.Body)
			}
			left[string(m.Body)] = true
		}
	}
	lost := 0
	for body := range l.confirmed {
		if !left[body] && l.acked[body] == 0 {
			lost++
		}
	}
	if lost > 0 || len(l.confirmed) == 0 || len(l.acked) == 0 {
		t.Errorf("lost %d of %d confirmed; %d acknowledged, %d left", lost, len(l.confirmed), len(l.acked), len(left))
	}
	s.begin()
	defer s.end()
	if len(s.conns) != 0 || len(s.alarms) != 0 {
		t.Errorf("%d connections, %d alarms left", len(s.conns), len(s.alarms))
	}
}
