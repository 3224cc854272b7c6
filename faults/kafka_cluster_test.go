package faults

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/kafka"
)

// clusterMoves are what happens between brokers of a cluster. kfake keeps groups for
// all of its brokers together: a coordinator that has to load a group is not shown.
func clusterMoves(t *testing.T, fake *kfake.Cluster) map[string][]func() {
	repeat := func(f func()) []func() { return []func(){f, f, f, f, f, f} }
	return map[string][]func(){
		"leaders":     repeat(fake.ShufflePartitionLeaders),
		"coordinator": repeat(fake.RehashCoordinators),
		"node": {func() {
			if err := fake.RemoveNode(0); err != nil {
				t.Error(err)
			}
		}},
	}
}

// F-B01, F-C02: partition leaders and the group's coordinator move between three
// brokers, and one of these goes, while two members work.
func TestKafkaLeadersAndCoordinatorsMove(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"leaders", "coordinator", "node"} {
		for name, p := range map[string]kafka.Protocol{"classic": kafka.Classic, "consumer": kafka.Consumer} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				fake := newFake(t, kfake.NumBrokers(3))
				neverCut(fake)
				movesWhileTwoWork(t, newKafkaTopic(t, fake.ListenAddrs(), 6), p, clusterMoves(t, fake)[kind])
			})
		}
	}
}

func movesWhileTwoWork(t *testing.T, k *kafkaTopic, p kafka.Protocol, moves []func()) {
	const records = 800
	l := oracle.New()
	var members []*container.ListenerContainer
	for range 2 {
		members = append(members, consumeFrom(t, k.group(kafka.GroupConfig{Protocol: p}), container.Config{Workers: fixed(8), Order: container.ByKey,
			Reopen: quickly, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, func(_ context.Context, d *longshore.Delivery) error {
			end := l.Begin(string(d.Body), string(d.Key))
			<-time.After(2 * time.Millisecond)
			end(d.Owned())
			return nil
		}))
	}
	told := 0
	var wg sync.WaitGroup
	wg.Go(func() { told = k.publish(l, 0, records, 200) })
	for i, move := range moves {
		eventually(t, time.Minute, "more is done", func() bool { return l.Done() >= (i+1)*records/10 })
		move()
	}
	wg.Wait()
	eventually(t, time.Minute, "all is done", func() bool { return l.Done() == records })
	eventually(t, time.Minute, "all is committed", func() bool { at, end, err := k.committed(); return err == nil && at == end })
	for _, c := range members {
		stopped(t, c)
		st := c.Stats()
		told += int(total(st.SettleFailures) + st.Lost)
	}
	check(t, l, oracle.Allow{Twice: told, Ordered: true})
}

// neverCut answers in place of kfake where logs end: where a leader has moved and
// nothing was written since, it says that the last epoch is not known, which is a log
// that was cut off; Kafka answers the end of the log.
func neverCut(fake *kfake.Cluster) {
	fake.ControlKey(kmsg.OffsetForLeaderEpoch.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		r := req.(*kmsg.OffsetForLeaderEpochRequest)                  //nolint:errcheck // of this key
		resp := r.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse) //nolint:errcheck // of this request
		for _, t := range r.Topics {
			topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				part := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				part.Partition, part.LeaderEpoch, part.EndOffset = p.Partition, p.LeaderEpoch, 1<<40
				topic.Partitions = append(topic.Partitions, part)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
}
