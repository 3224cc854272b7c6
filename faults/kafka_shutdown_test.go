package faults

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-A02: a handler that ignores its context publishes its result and succeeds while the
// stop is under way: one result, one settlement, nothing again after the restart.
func TestKafkaDoneIsSettledWhileStopping(t *testing.T) {
	onKafka(t, 1, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		results, l := k.also(".results"), oracle.New()
		k.publish(l, 0, 1, 1)
		pub, err := k.broker.Publisher(kafka.PublisherConfig{})
		if err != nil {
			t.Fatal(err)
		}
		began := make(chan struct{})
		src := k.group(kafka.GroupConfig{Protocol: p, SettleLinger: time.Hour})
		c := consumeFrom(t, src, container.Config{DrainTimeout: 20 * time.Second, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, func(_ context.Context, d *longshore.Delivery) error {
			end := l.Begin(string(d.Body), string(d.Key))
			close(began)
			<-time.After(time.Second) // it does not look at its context
			err := pub.Publish(context.Background(), results, &longshore.Message{Body: d.Body})
			end(err == nil)
			return err
		})
		<-began
		stopped(t, c)
		if err := pub.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if at, end, err := k.committed(); at != 1 || end != 1 || err != nil {
			t.Errorf("committed %d of %d: %v", at, end, err)
		}
		k.publish(l, 1, 1, 1) // when it is seen, 0 would have been
		again := consumeFrom(t, src, container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, record(l))
		eventually(t, 30*time.Second, "the next one is done", func() bool { return l.Done() == 2 })
		stopped(t, again)
		k.records(results, 1)
		check(t, l, oracle.Allow{Ordered: true})
	})
}

// F-A03: fewer are done than a commit waits for, and the linger never ends.
func TestKafkaAcksBelowTheThresholdAreCommittedAtStop(t *testing.T) {
	onKafka(t, 2, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		l, total := oracle.New(), 0
		for _, n := range []int{1, 5, 9} {
			k.publish(l, total, n, 10)
			total += n
			c := consumeFrom(t, k.group(kafka.GroupConfig{Protocol: p, SettleLinger: time.Hour}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, record(l))
			eventually(t, 30*time.Second, "all are handled", func() bool { return l.Done() == total })
			stopped(t, c)
			if r := c.Report(); r.Unflushed != 0 {
				t.Errorf("%d done: %v", n, r)
			}
			if at, _, err := k.committed(); at != int64(total) {
				t.Errorf("%d done: committed %d, want %d: %v", n, at, total, err)
			}
		}
		check(t, l, oracle.Allow{Ordered: true})
	})
}

// F-A03: the same with the broker gone before the stop: in time, counted and named.
func TestKafkaUnflushedAcksAreReportedWhenTheBrokerIsGone(t *testing.T) {
	t.Parallel()
	k := newKafkaTopic(t, newFake(t).ListenAddrs(), 1)
	l := oracle.New()
	k.publish(l, 0, 7, 1)
	cuts, cut := k.cuttable()
	c := consumeFrom(t, cuts.Group(k.name, []string{k.name}, kafka.GroupConfig{SettleLinger: time.Hour}),
		container.Config{DrainTimeout: time.Second, CancelGrace: 2 * time.Second, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, record(l))
	eventually(t, 30*time.Second, "all are handled", func() bool { return l.Done() == 7 })
	cut()
	begin := time.Now()
	r := stops(t, c)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("stop took %v of a budget of 3 s", took)
	}
	if r.Unflushed != 7 || len(r.UnflushedIDs) != 7 {
		t.Errorf("unflushed %d, named %q, want 7", r.Unflushed, r.UnflushedIDs)
	}
}

// cuttable is a broker whose connections end with cut, which returns once they are closed, and
// are refused from then on.
func (k *kafkaTopic) cuttable() (b *kafka.Broker, cut func()) {
	gone := make(chan struct{})
	var open sync.WaitGroup
	dial := func(ctx context.Context, network, host string) (net.Conn, error) {
		select {
		case <-gone:
			return nil, fmt.Errorf("dial %s: refused", host)
		default:
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, host)
		if err == nil {
			open.Go(func() { <-gone; _ = conn.Close() })
		}
		return conn, err
	}
	return kafka.New(k.addrs, kafka.Config{Options: []kgo.Opt{kgo.Dialer(dial)}}), func() { close(gone); open.Wait() }
}

// F-A04: a fetch answers after the stop began. What was fetched and not worked on is
// not committed, and comes to the next one at once.
func TestKafkaFetchedAndUnworkedIsNotCommitted(t *testing.T) {
	onKafka(t, 2, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		l := oracle.New()
		const records = 600
		for i := range 4 {
			k.publish(l, i*records/4, records/4, 40)
			c := consumeFrom(t, k.group(kafka.GroupConfig{Protocol: p}), container.Config{Workers: fixed(2), DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, func(_ context.Context, d *longshore.Delivery) error {
				end := l.Begin(string(d.Body), string(d.Key))
				<-time.After(time.Millisecond)
				end(true)
				return nil
			})
			before := l.Done()
			eventually(t, 30*time.Second, "some were handled", func() bool { return l.Done() > before+10 })
			stopped(t, c)
			if at, _, err := k.committed(); at > int64(l.Done()) {
				t.Errorf("committed %d of %d that are done: %v", at, l.Done(), err)
			}
		}
		c := consumeFrom(t, k.group(kafka.GroupConfig{Protocol: p}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, record(l))
		eventually(t, 30*time.Second, "all are done", func() bool { return l.Done() == records })
		stopped(t, c)
		if at, end, err := k.committed(); at != end {
			t.Errorf("committed %d of %d: %v", at, end, err)
		}
		check(t, l, oracle.Allow{Ordered: true}) // none twice, none missing
	})
}
