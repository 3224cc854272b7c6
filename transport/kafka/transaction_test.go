package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// withOut adds a topic for results.
func (c *cluster) withOut(partitions int32) (out string) {
	c.t.Helper()
	out = c.topic + "-out"
	createTopic(c.t, c.addrs, out, partitions)
	if c.fake == nil {
		c.t.Cleanup(func() { _, _ = admin(c.t, c.addrs).DeleteTopics(context.Background(), out) })
	}
	return out
}

// results are the committed records of a topic, up to a number and then what else comes within
// a moment.
func (c *cluster) results(topic string, n int) (recs []*kgo.Record) {
	c.t.Helper()
	cl, err := kgo.NewClient(append(slices.Clone(c.opts), kgo.SeedBrokers(c.addrs...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))...)
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	for limit := patience; ; {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		got := cl.PollFetches(ctx).Records()
		cancel()
		recs = append(recs, got...)
		switch {
		case len(got) == 0 && len(recs) < n:
			c.t.Fatalf("%d of %d results in %s", len(recs), n, topic)
		case len(got) == 0:
			return recs
		case len(recs) >= n:
			limit = 300 * time.Millisecond
		}
	}
}

// once checks that a topic has the result of each number once, and in order by key.
func once(t testing.TB, recs []*kgo.Record, n int, but ...int) {
	t.Helper()
	times, last := map[int]int{}, map[string]int{}
	for _, r := range recs {
		var num int
		_, _ = fmt.Sscan(string(r.Value), &num)
		times[num]++
		if before, ok := last[string(r.Key)]; ok && num < before {
			t.Errorf("result %d of key %s comes after that of %d", num, r.Key, before)
		}
		last[string(r.Key)] = num
	}
	for i := range n {
		want := 1
		if slices.Contains(but, i) {
			want = 0
		}
		if times[i] != want {
			t.Errorf("%d results of record %d, want %d", times[i], i, want)
		}
	}
}

// pass publishes the result of a record, as its handler would.
func pass(t testing.TB, out string, d *longshore.Delivery) {
	t.Helper()
	if err := kafka.TxFrom(d.Context()).Publish(d.Context(), out, &longshore.Message{Key: d.Key, Body: d.Body}); err != nil {
		t.Errorf("publish the result of %s: %v", d.Body, err)
	}
}

// Results are committed with the positions of their records, and with what is done out of order:
// F-C01, F-C06: a record that is slow is not in the commit, and neither is what it has published; one that is
// given back publishes again; the next owner repeats nothing.
func TestTransactionCommitsWhatIsDone(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(t *testing.T, c *cluster, p kafka.Protocol) {
		out := c.withOut(2)
		c.produce(0, 20, 5, 0)
		src := c.group(kafka.GroupConfig{Protocol: p, Transactional: &kafka.Transactional{}})
		m := open(t, src)
		for i, d := range m.take(20) {
			pass(t, out, d)
			switch i {
			case 3: // slow
			case 7:
				if err := d.Nack(t.Context(), 0); err != nil {
					t.Error(err)
				}
			default:
				ack(t, d)
			}
		}
		again := m.take(1)[0]
		pass(t, out, again)
		ack(t, again)
		if err := kafka.TxOf(again).Publish(t.Context(), out, &longshore.Message{}); !errors.Is(err, longshore.ErrSettled) {
			t.Errorf("publish after the ack: %v", err)
		}
		m.flush()
		if at, saved := c.committed(0); at != 3 || saved == "" {
			t.Errorf("committed %d %q, want 3 and what is done behind it", at, saved)
		}
		first := c.results(out, 19)
		if len(first) != 19 {
			t.Errorf("%d results, want 19 without that of the slow record", len(first))
		}
		m.shut()
		next := open(t, src)
		slow := next.take(1)[0]
		if string(slow.Body) != "3" {
			t.Errorf("received %s, want the slow record", slow.Body)
		}
		pass(t, out, slow)
		ack(t, slow)
		next.none(200 * time.Millisecond) // and takes over what was done behind it
		next.flush()
		c.waitCommitted(0, 20)
		all := c.results(out, 20)
		times := map[string]int{}
		for _, r := range all {
			times[string(r.Value)]++
		}
		if len(times) != 20 || len(all) != 20 {
			t.Errorf("%d results of %d records, want one of each of 20", len(all), len(times))
		}
	})
}

// What the broker answers to a transaction, and connections that are cut before or after its end
// was written, make no result come twice or not at all.
func TestTransactionIsRepeatedAfterAFault(t *testing.T) {
	t.Parallel()
	fault := func(key kmsg.Key, err *kerr.Error) func(*cluster) {
		return func(c *cluster) {
			if c.fake != nil {
				c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: err, Count: 2})
			}
		}
	}
	for name, f := range map[string]func(*cluster){
		"fenced at the end":        fault(kmsg.EndTxn, kerr.ProducerFenced),
		"unknown at the end":       fault(kmsg.EndTxn, kerr.UnknownServerError),
		"fenced while publishing":  fault(kmsg.Produce, kerr.InvalidProducerEpoch),
		"rebalance":                fault(kmsg.TxnOffsetCommit, kerr.RebalanceInProgress),
		"an answer in time":        fault(kmsg.TxnOffsetCommit, kerr.RequestTimedOut),
		"metadata too large":       fault(kmsg.TxnOffsetCommit, kerr.OffsetMetadataTooLarge),
		"aborted by the broker":    fault(kmsg.Produce, kerr.TransactionAbortable),
		"cut before the end":       func(c *cluster) { c.opts = append(c.opts, kgo.Dialer(endsCut(2, false))) },
		"cut after the end":        func(c *cluster) { c.opts = append(c.opts, kgo.Dialer(endsCut(2, true))) },
		"another with the same id": func(c *cluster) { intruder(c, "same") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, c *cluster) {
				out := c.withOut(2)
				c.produce(0, 30, 5, 0)
				m := open(t, c.group(kafka.GroupConfig{SettleLinger: 20 * time.Millisecond, Transactional: &kafka.Transactional{ID: c.topic + "same", Timeout: 4 * time.Second}}))
				ds := m.take(30)
				f(c)
				for part := range slices.Chunk(ds, 10) {
					for i := range part { // the first of each comes last, so that there is metadata
						pass(t, out, part[(i+1)%10])
					}
					for i := range part {
						ack(t, part[(i+1)%10])
						if i == 5 {
							m.flush()
						}
					}
					m.flush()
				}
				c.waitCommitted(0, 30)
				m.shut()
				c.opts = nil
				recs := c.results(out, 30)
				times := map[string]int{}
				for _, r := range recs {
					times[string(r.Value)]++
				}
				if len(recs) != 30 || len(times) != 30 {
					t.Errorf("%d results of %d records, want one of each of 30", len(recs), len(times))
				}
			}
			if strings.HasPrefix(name, "cut") || strings.HasPrefix(name, "another") {
				onEither(t, 1, run)
			} else {
				run(t, embeddedCluster(t, 1))
			}
		})
	}
}

// intruder is another producer with a group's transactional id.
func intruder(c *cluster, id string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.TransactionalID(c.topic+id))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	if _, _, err := cl.ProducerID(context.Background()); err != nil {
		c.t.Error(err)
	}
}

// endsCut is a dialer whose connections are cut at the end of the first n transactions: before
// the broker hears of it, or before its answer is heard.
func endsCut(n int32, after bool) func(context.Context, string, string) (net.Conn, error) {
	var left atomic.Int32
	left.Store(n)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &endCut{Conn: nc, left: &left, after: after}, nil
	}
}

type endCut struct {
	net.Conn
	left  *atomic.Int32
	after bool
	mu    sync.Mutex
	cut   bool // the next answer is not heard
}

func (c *endCut) Write(b []byte) (int, error) {
	if len(b) > 6 && b[4] == 0 && b[5] == byte(kmsg.EndTxn) && c.left.Add(-1) >= 0 {
		if !c.after {
			_ = c.Close()
			return 0, io.ErrClosedPipe
		}
		c.mu.Lock()
		c.cut = true
		c.mu.Unlock()
	}
	return c.Conn.Write(b)
}

func (c *endCut) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}

// In a container: a handler that fails leaves nothing behind but its dead letter, which is
// written in the transaction; what is discarded leaves nothing.
func TestTransactionInAContainer(t *testing.T) {
	t.Parallel()
	onEither(t, 2, func(t *testing.T, c *cluster) {
		out := c.withOut(2)
		dead := c.topic + "-dead"
		createTopic(t, c.addrs, dead, 1)
		c.produce(0, 40, 5, -1)
		src := c.group(kafka.GroupConfig{Transactional: &kafka.Transactional{}})
		var tries atomic.Int32
		ct, err := container.New(src, longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			if err := kafka.TxFrom(ctx).Publish(ctx, out, &longshore.Message{Key: d.Key, Body: d.Body}); err != nil {
				return err
			}
			switch string(d.Body) {
			case "5":
				return longshore.Reject(errors.New("bad"))
			case "6":
				return longshore.Discard(errors.New("not needed"))
			case "7":
				if tries.Add(1) < 3 {
					return errors.New("not yet")
				}
			}
			return nil
		}), container.Config{Workers: container.Workers{Min: 8}, Logger: zap.NewNop(), DeadLetter: container.DeadLetter{To: dead},
			Redelivery: container.Redelivery{MaxAttempts: 5, Backoff: container.Backoff{Every: 10 * time.Millisecond}}})
		if err != nil {
			t.Fatal(err)
		}
		containertest.Start(t, ct)
		c.results(out, 38)
		eventually(t, "all is committed", func() bool { return c.sum() == 40 })
		if err := ct.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		once(t, c.results(out, 38), 40, 5, 6)
		if letters := c.results(dead, 1); len(letters) != 1 || string(letters[0].Value) != "5" || !letters[0].Attrs.IsTransactional() {
			t.Errorf("%d dead letters, want that of record 5 in a transaction", len(letters))
		}
	})
}
