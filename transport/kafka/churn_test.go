package kafka_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// ledger is what handlers did, over all members.
type ledger struct {
	mu    sync.Mutex
	times map[int]int    // of each number, handled to its end
	last  map[string]int // of each key, the highest number handled first
	wrong []string       // first deliveries out of order
	lost  int            // acks that were refused
}

func newLedger() *ledger { return &ledger{times: map[int]int{}, last: map[string]int{}} }

func (l *ledger) handled(key string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.times[n]++; l.times[n] > 1 {
		return
	}
	if last, ok := l.last[key]; ok && n < last {
		l.wrong = append(l.wrong, fmt.Sprintf("key %s: %d after %d", key, n, last))
	}
	l.last[key] = max(n, l.last[key])
}

func (l *ledger) refused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost++
}

func (l *ledger) distinct() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.times)
}

// worker is a member with lanes by key, and the orderly stop of a container.
type worker struct {
	m     *member
	l     *ledger
	lanes []chan *longshore.Delivery
	all   sync.WaitGroup
	work  func()
}

const lanes = 48

func startWorker(t testing.TB, src transport.Source, l *ledger, work func()) *worker {
	t.Helper()
	w := &worker{m: open(t, src), l: l, work: work}
	for range lanes {
		lane := make(chan *longshore.Delivery, 4)
		w.lanes = append(w.lanes, lane)
		w.all.Go(func() {
			for d := range lane {
				w.handle(d)
			}
		})
	}
	w.all.Go(w.receive)
	return w
}

func (w *worker) receive() {
	for {
		ds, err := w.m.Receive(context.Background(), lanes)
		if err != nil {
			for _, lane := range w.lanes {
				close(lane)
			}
			return
		}
		for _, d := range ds {
			h := fnv.New32a()
			_, _ = h.Write(d.Key)
			w.lanes[h.Sum32()%lanes] <- d
		}
	}
}

func (w *worker) handle(d *longshore.Delivery) {
	if !d.Owned() {
		return // as a container does
	}
	w.work()
	n, _ := strconv.Atoi(string(d.Body))
	w.l.handled(string(d.Key), n)
	if d.Ack(context.Background()) != nil {
		w.l.refused()
	}
}

func (w *worker) stop() {
	_ = w.m.Cancel(context.Background())
	w.all.Wait()
	w.m.flush()
	w.m.shut()
}

// churn lets members join and leave while numbered records are consumed, and checks
// the ledger.
func churn(t *testing.T, c *cluster, cfg kafka.GroupConfig, records int, lasts, every time.Duration) {
	t.Helper()
	const keys = 2000
	l := newLedger()
	src := c.group(cfg)
	work := func() { wait(time.Duration(rand.Int64N(int64(4 * time.Millisecond)))) }
	var produced sync.WaitGroup
	produced.Go(func() {
		for at := 0; at < records; at += 2000 {
			c.produce(at, min(at+2000, records), keys, -1)
			wait(lasts / time.Duration(1+records/2000) / 2)
		}
	})
	members := []*worker{startWorker(t, src, l, work), startWorker(t, src, l, work)}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for until := time.Now().Add(lasts); time.Now().Before(until); {
		<-tick.C
		members = append(members, startWorker(t, src, l, work))
		if len(members) > 4 {
			members[0].stop()
			members = members[1:]
		}
	}
	produced.Wait()
	eventuallyIn(t, 60*time.Second, func() string { return fmt.Sprintf("all of %d records handled, %d are", records, l.distinct()) },
		func() bool { return l.distinct() == records })
	for _, w := range members {
		w.stop()
	}
	dups := 0
	for _, n := range l.times {
		dups += n - 1
	}
	t.Logf("%d records, %d handled twice, %d late acks refused", records, dups, l.lost)
	if dups > l.lost {
		t.Errorf("%d handled twice, though only %d acks were refused", dups, l.lost)
	}
	if len(l.wrong) > 0 {
		t.Errorf("order broken %d times: %s", len(l.wrong), l.wrong[0])
	}
	if sum := c.sum(); sum != int64(records) {
		t.Errorf("committed %d in all, want %d", sum, records)
	}
}

func (c *cluster) sum() (n int64) {
	all, err := admin(c.t, c.addrs).FetchOffsets(context.Background(), c.topic)
	if err != nil {
		c.t.Fatal(err)
	}
	all.Each(func(o kadm.OffsetResponse) { n += o.At })
	return n
}

func wait(d time.Duration) {
	t := time.NewTimer(d)
	<-t.C
}

func eventuallyIn(t testing.TB, limit time.Duration, what func() string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not seen within %s: %s", limit, what())
		}
	}
}

// F-C02: members come and go; nothing is lost, the order of each key holds, and only
// what was refused is done twice.
func TestChurn(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		churn(t, embeddedCluster(t, 8), kafka.GroupConfig{Protocol: p}, 20000, 4*time.Second, 500*time.Millisecond)
	})
}

// F-C02 on a real broker. LONGSHORE_CHURN is how long it lasts, 10 s if it is not set.
func TestChurnOnKafka(t *testing.T) {
	t.Parallel()
	addrs := brokertest.Kafka(t)
	lasts := 10 * time.Second
	if d, err := time.ParseDuration(os.Getenv("LONGSHORE_CHURN")); err == nil {
		lasts = d
	}
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		churn(t, realCluster(t, addrs, 8), kafka.GroupConfig{Protocol: p}, 60000, lasts, time.Second)
	})
}

// realCluster is a topic of its own on a broker that is there.
func realCluster(t testing.TB, addrs []string, partitions int32) *cluster {
	t.Helper()
	c := &cluster{addrs: addrs, topic: brokertest.Name(t, "kafka"), t: t}
	createTopic(t, addrs, c.topic, partitions)
	t.Cleanup(func() {
		if _, err := admin(t, addrs).DeleteTopics(context.Background(), c.topic); err != nil {
			t.Error(err)
		}
	})
	return c
}
