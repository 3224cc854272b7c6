package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/kafka"
)

// kafkaTopic is a topic of a test's own, with a group of the same name.
type kafkaTopic struct {
	t      *testing.T
	addrs  []string
	broker *kafka.Broker
	adm    *kadm.Client
	name   string
}

func newKafkaTopic(t *testing.T, addrs []string, partitions int32) *kafkaTopic {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		t.Fatal(err)
	}
	k := &kafkaTopic{t: t, addrs: addrs, adm: kadm.NewClient(cl), name: brokertest.Name(t, "faults"),
		broker: kafka.New(addrs, kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(300 * time.Millisecond)}})}
	if _, err := k.adm.CreateTopic(t.Context(), partitions, 1, nil, k.name); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the broker knows the new topic", func() bool {
		known, err := k.adm.ListTopics(context.Background(), k.name)
		if err != nil || known[k.name].Err != nil || len(known[k.name].Partitions) < int(partitions) {
			return false
		}
		for _, p := range known[k.name].Partitions {
			if p.Err != nil || p.Leader < 0 {
				return false
			}
		}
		return true
	})
	t.Cleanup(func() {
		if _, err := k.adm.DeleteTopics(context.Background(), k.name); err != nil {
			t.Error(err)
		}
		cl.Close()
	})
	return k
}

// publish numbers records from first on. What fails is published again, as a producer
// does that must not lose anything: it may be there twice then.
func (k *kafkaTopic) publish(l *oracle.Ledger, first, n, keys int) (again int) {
	k.t.Helper()
	p, err := k.broker.Publisher(kafka.PublisherConfig{Timeout: 2 * time.Minute})
	if err != nil {
		k.t.Error(err)
		return 0
	}
	defer func() { _ = p.Close(context.Background()) }()
	for i := first; i < first+n; i += 50 {
		var msgs []*longshore.Message
		for j := i; j < min(i+50, first+n); j++ {
			msgs = append(msgs, &longshore.Message{ID: fmt.Sprint(j), Key: fmt.Appendf(nil, "k%d", j%keys), Body: fmt.Append(nil, j)})
		}
		for p.Publish(context.Background(), k.name, msgs...) != nil {
			if again += len(msgs); again > 100*n {
				k.t.Error("publishing fails again and again")
				return again
			}
			<-time.After(100 * time.Millisecond)
		}
		for _, m := range msgs {
			l.Published(m.ID, string(m.Key))
		}
	}
	return again
}

// committed is the sum of the group's positions, and the end of all logs.
func (k *kafkaTopic) committed() (at, end int64, err error) {
	offsets, err := k.adm.FetchOffsets(context.Background(), k.name)
	if err != nil {
		return 0, 0, err
	}
	offsets.Each(func(o kadm.OffsetResponse) { at += o.At })
	ends, err := k.adm.ListEndOffsets(context.Background(), k.name)
	if err != nil {
		return 0, 0, err
	}
	ends.Each(func(o kadm.ListedOffset) { end += o.Offset })
	return at, end, nil
}

// The broker is killed while records are published and handled, and comes back; then it
// is frozen beyond the groups' sessions. Nothing is lost, the order of each key
// holds, and what ran twice was in work, or not yet committed. F-B01, F-C02
func TestKafkaBrokerRestartsLoseNothing(t *testing.T) {
	t.Parallel()
	node := brokertest.FaultKafka(t)
	const each = 2000
	type run struct {
		name  string
		l     *oracle.Ledger
		k     *kafkaTopic
		c     *container.ListenerContainer
		twice int
	}
	var runs []*run
	for name, p := range map[string]kafka.Protocol{"classic": kafka.Classic, "consumer": kafka.Consumer} {
		r := &run{name: name, l: oracle.New(), k: newKafkaTopic(t, node.Addrs, 4)}
		src := r.k.broker.Group(r.k.name, []string{r.k.name}, kafka.GroupConfig{Protocol: p, SessionTimeout: 4 * time.Second})
		r.c = consumeFrom(t, src, container.Config{Workers: container.Workers{Min: 16, Max: 16}, Order: container.ByKey,
			DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, Reopen: quickly}, func(_ context.Context, d *longshore.Delivery) error {
			end := r.l.Begin(string(d.Body), string(d.Key))
			<-time.After(3 * time.Millisecond)
			end(d.Owned())
			return nil
		})
		runs = append(runs, r)
	}
	for i, fault := range []func(){
		func() { node.Kill(); node.Start() },
		func() { node.Freeze(); <-time.After(6 * time.Second); node.Thaw() },
	} {
		var publishing sync.WaitGroup
		for _, r := range runs {
			r.k.publish(r.l, i*each, each/2, 60)
			before := r.l.Done()
			publishing.Go(func() { r.twice += r.k.publish(r.l, i*each+each/2, each/2, 60) }) // into the fault
			eventually(t, 60*time.Second, "some were handled", func() bool { return r.l.Done() > before+50 || r.l.Done() >= i*each+each/2 })
		}
		fault()
		publishing.Wait()
	}
	for _, r := range runs {
		eventually(t, 90*time.Second, r.name+": all are done", func() bool { return r.l.Done() == 2*each })
		// What was done while nothing could be committed comes again, and is committed then.
		eventually(t, 90*time.Second, r.name+": the group is at the end", func() bool {
			at, end, err := r.k.committed()
			return err == nil && at == end
		})
		st := r.c.Stats()
		if err := r.c.Stop(t.Context()); err != nil {
			t.Errorf("%s: stop: %v", r.name, err)
		}
		// Nothing runs twice but what was told: acks that were not committed, deliveries
		// that were lost in work.
		told := int(total(st.SettleFailures) + st.Lost)
		report := check(t, r.l, oracle.Allow{Twice: r.twice + told, Ordered: true})
		t.Logf("%s: %d published again, %d told, %d handled twice", r.name, r.twice, told, len(report.Twice))
	}
}
