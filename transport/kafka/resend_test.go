package kafka_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// beside publishes a message among many others, each by a Publish of its own that shares its
// batches with the rest, and returns its error. All others must go through, and soon.
func beside(t *testing.T, c *cluster, p *kafka.Publisher, odd *longshore.Message) error {
	t.Helper()
	const rounds, others = 5, 40
	var failure error
	for round := range rounds {
		var all sync.WaitGroup
		for i := range others {
			all.Go(func() {
				start := time.Now()
				m := &longshore.Message{Key: fmt.Appendf(nil, "%d", i), Body: incompressible(100)}
				if err := p.Publish(t.Context(), kafka.To(c.topic, 0), m); err != nil {
					t.Errorf("round %d: a neighbour failed: %v", round, err)
				} else if took := time.Since(start); took > patience/4 {
					t.Errorf("round %d: a neighbour took %s", round, took)
				}
			})
			if i == others/2 {
				all.Go(func() { failure = p.Publish(t.Context(), kafka.To(c.topic, 0), odd) })
			}
		}
		all.Wait()
	}
	return failure
}

// lingering collects records of several calls in one batch.
func lingering(t *testing.T, c *cluster) *kafka.Publisher {
	t.Helper()
	return publisher(t, c.broker(), kafka.PublisherConfig{Linger: 20 * time.Millisecond})
}

// A broker refuses a batch for one of its records: those of other calls go through, and the
// error is that record's own. F-N18
func TestARefusedRecordFailsNoOther(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.MessageTooLarge, Count: -1, When: func(r kmsg.Request) bool {
		return len(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records) > 50_000 //nolint:errcheck // by the key
	}})
	err := beside(t, c, lingering(t, c), &longshore.Message{Key: []byte("odd"), Body: incompressible(60_000)})
	if !errors.Is(err, longshore.CodeTooLarge) {
		t.Errorf("the one that is too large: %v", err)
	}
	open(t, c.group(kafka.GroupConfig{})).take(200)
}

// The same with the limits of a real topic: of its size, and of its being compacted, where a
// record must have a key. One beyond its limit of age goes out, with the present as the
// record's time. F-N18, F-N01
func TestATopicsLimitsConcernOneRecord(t *testing.T) {
	t.Parallel()
	addrs := brokertest.Kafka(t)
	old := time.Now().Add(-2 * time.Hour).Truncate(time.Millisecond)
	for name, odd := range map[string]struct {
		setting, value string
		m              *longshore.Message
		want           error
		records        int
	}{
		"size": {"max.message.bytes", "20000", &longshore.Message{Key: []byte("odd"), Body: incompressible(30_000)}, longshore.CodeTooLarge, 200},
		"key":  {"cleanup.policy", "compact", &longshore.Message{Body: []byte("odd")}, longshore.CodeRefused, 200},
		"age":  {"message.timestamp.before.max.ms", "3600000", &longshore.Message{Key: []byte("odd"), Body: []byte("odd"), Timestamp: old}, nil, 205},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := realCluster(t, addrs, 1)
			if _, err := admin(t, addrs).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: odd.setting, Value: &odd.value}}, c.topic); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the topic's limit", func() bool {
				all, err := admin(t, addrs).DescribeTopicConfigs(t.Context(), c.topic)
				if err != nil {
					return false
				}
				for _, s := range all[0].Configs {
					if s.Key == odd.setting && s.Value != nil && *s.Value == odd.value {
						return true
					}
				}
				return false
			})
			if err := beside(t, c, lingering(t, c), odd.m); !errors.Is(err, odd.want) {
				t.Errorf("the odd one: %v, want %v", err, odd.want)
			}
			for _, d := range open(t, c.group(kafka.GroupConfig{})).take(odd.records) {
				if string(d.Body) == "odd" && !d.Timestamp.Equal(old) {
					t.Errorf("sent with %v, received with %v", old, d.Timestamp)
				}
			}
		})
	}
}

// One whose time is over takes those behind it back, but ends the time of none: they are
// written once the leader answers. F-N18
func TestALateRecordFailsNoOther(t *testing.T) {
	t.Parallel()
	f := fake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "orders"))
	if err := f.MoveTopicPartition("orders", 0, 0); err != nil {
		t.Fatal(err)
	}
	m := muteNode{keys: []kmsg.Key{kmsg.Produce}}
	b := kafka.New(f.ListenAddrs(), kafka.Config{Options: []kgo.Opt{kgo.Dialer(m.dial)}})
	p := publisher(t, b, kafka.PublisherConfig{Timeout: 10 * time.Second})
	if err := p.Publish(t.Context(), "orders", messages("first")...); err != nil {
		t.Fatal(err)
	}
	m.mute(f.ListenAddrs()[0])
	head, next := make(chan error, 1), make(chan error, 1)
	go func() { head <- p.Publish(t.Context(), "orders", messages("head")...) }()
	half := time.NewTimer(5 * time.Second)
	defer half.Stop()
	<-half.C
	go func() { next <- p.Publish(t.Context(), "orders", messages("next")...) }()
	if err := <-head; !errors.Is(err, longshore.CodeTimeout) {
		t.Errorf("head: %v", err)
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for waiting := true; waiting; {
		m.heal() // also those connections that fell silent at the last moment
		select {
		case err := <-next:
			waiting = false
			if err != nil {
				t.Errorf("next: %v", err)
			}
		case <-again.C:
		}
	}
	g := open(t, (&cluster{addrs: f.ListenAddrs(), topic: "orders", t: t}).group(kafka.GroupConfig{}))
	for _, want := range []string{"first", "next"} {
		if d := g.take(1)[0]; string(d.Body) != want {
			t.Errorf("received %s, want %s", d.Body, want)
		}
	}
}
