package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka"
)

// What has piled up for one partition goes in several transactions, beside a record that is slow.
// A next owner repeats only that one.
func TestTransactionsOfOnePartitionGoInPieces(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		out := c.withOut(1)
		c.produce(0, 21, 5, 0)
		src := c.group(kafka.GroupConfig{SettleLinger: 2 * time.Second, Transactional: &kafka.Transactional{}})
		var ends atomic.Int32
		if c.fake != nil {
			c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Observe: true, Count: -1, When: func(kmsg.Request) bool { ends.Add(1); return true }})
		}
		m := open(t, src)
		ds := m.take(21)
		large := func(d *longshore.Delivery) {
			body := append(append(bytes.Clone(d.Body), ' '), bytes.Repeat([]byte("x"), 900<<10)...)
			if err := kafka.TxOf(d).Publish(t.Context(), out, &longshore.Message{Key: d.Key, Body: body}); err != nil {
				t.Error(err)
			}
		}
		for _, d := range ds {
			large(d)
		}
		ack(t, ds[1:]...)
		m.flush()
		if n := ends.Load(); c.fake != nil && (n < 3 || n > 6) {
			t.Errorf("%d transactions, want 3", n)
		}
		c.results(out, 20)
		m.shut()
		next := open(t, src)
		slow := next.take(1)[0]
		if string(slow.Body) != "0" {
			t.Errorf("received %s, want the slow record", slow.Body)
		}
		large(slow)
		ack(t, slow)
		next.none(200 * time.Millisecond)
		next.flush()
		c.waitCommitted(0, 21)
		times := map[int]int{}
		for _, r := range c.results(out, 21) {
			var n int
			_, _ = fmt.Sscan(string(r.Value), &n)
			times[n]++
		}
		for i := range 21 {
			if times[i] != 1 {
				t.Errorf("%d results of record %d, want 1", times[i], i)
			}
		}
	})
}

// A topic that is deleted while results of its records wait holds up those of another topic's
// records only until it is seen to be gone, on the real broker.
func TestTransactionAndADeletedTopic(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		out, gone := c.withOut(1), c.topic+"-gone"
		createTopic(t, c.addrs, gone, 1)
		c.produce(0, 3, 3, 0)
		p := publisher(t, c.broker(), kafka.PublisherConfig{})
		if err := p.Publish(t.Context(), gone, &longshore.Message{Body: []byte("lost")}); err != nil {
			t.Fatal(err)
		}
		m := open(t, c.broker().Group(c.topic, []string{c.topic, gone}, kafka.GroupConfig{SettleLinger: 2 * time.Second, Transactional: &kafka.Transactional{}}))
		ds := m.take(4)
		m.flush()
		if _, err := admin(t, c.addrs).DeleteTopics(context.Background(), gone); err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			pass(t, out, d)
		}
		ack(t, ds...)
		c.waitCommitted(0, 3)
		if recs := c.results(out, 3); len(recs) != 3 && len(recs) != 4 { // the broker may not know of the deletion yet
			t.Errorf("%d results, want 3", len(recs))
		}
		// What was done in the deleted topic cannot be committed; whether that is known before the
		// close says so depends on when the topic was looked at.
		if err := m.Close(context.Background()); err != nil && !errors.Is(err, longshore.CodeNotFound) && !errors.Is(err, longshore.CodeSettle) {
			t.Errorf("close: %v", err)
		}
	})
}
