package kafka_test

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-C05: a new leader has not got the last records, and the client goes on where its
// log ends. What is not done below that comes again, in order, and is not passed over.
func TestCutLogKeepsWhatIsNotDone(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		const ends = 8
		f := fake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "orders"))
		c := &cluster{addrs: f.ListenAddrs(), fake: f, topic: "orders", t: t}
		f.ControlKey(kmsg.OffsetForLeaderEpoch.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			f.KeepControl()
			return endsAt(req.(*kmsg.OffsetForLeaderEpochRequest), ends), nil, true //nolint:errcheck // of this key
		})
		c.produce(0, 10, 10, 0)
		m := open(t, c.group(kafka.GroupConfig{Protocol: p}))
		ds := m.take(10)
		ack(t, slices.Delete(slices.Clone(ds), 3, 4)...)
		m.flush()
		if err := f.MoveTopicPartition("orders", 0, 1-f.LeaderFor("orders", 0)); err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, d := range m.take(3) {
			got = append(got, d.Origin.Position)
			ack(t, d)
		}
		if want := []uint64{3, 8, 9}; !slices.Equal(got, want) {
			t.Errorf("after the cut at %d come %v, want %v; told: %q", ends, got, want, m.told(transport.EventSkipped))
		}
		m.none(50 * time.Millisecond)
		m.flush()
		c.waitCommitted(0, 10)
	})
}

// endsAt is the answer of a leader whose log ends there.
func endsAt(req *kmsg.OffsetForLeaderEpochRequest, end int64) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse) //nolint:errcheck // of this request
	for _, t := range req.Topics {
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			part := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			part.Partition, part.LeaderEpoch, part.EndOffset = p.Partition, p.LeaderEpoch, end
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}
