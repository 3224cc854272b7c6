package kafka_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka"
)

// What was sent and is not answered is given up in its time too, by a caller without a
// deadline and whatever the date of its message; others are not held up, and what was
// reported as failed is not written when the broker is back. F-B05, F-B06, F-N01, F-N21
func TestPublishThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	f := fake(t, kfake.NumBrokers(2), kfake.SeedTopics(2, "orders"))
	for p, node := range []int32{0, 1} {
		if err := f.MoveTopicPartition("orders", int32(p), node); err != nil { //nolint:gosec // 0 and 1
			t.Fatal(err)
		}
	}
	m := muteNode{keys: []kmsg.Key{kmsg.Produce}}
	b := kafka.New(f.ListenAddrs(), kafka.Config{Options: []kgo.Opt{kgo.Dialer(m.dial)}})
	p := publisher(t, b, kafka.PublisherConfig{Timeout: time.Second})
	publish := func(partition int32, body string) error {
		return p.Publish(t.Context(), kafka.To("orders", partition), messages(body)...)
	}
	for partition := range int32(2) {
		if err := publish(partition, "first"); err != nil {
			t.Fatal(err)
		}
	}
	m.mute(f.ListenAddrs()[0])
	for _, age := range []time.Duration{0, time.Hour, -20 * time.Minute} {
		lost := &longshore.Message{Key: []byte("k"), Body: []byte("lost"), Timestamp: time.Now().Add(-age)}
		start := time.Now()
		if err := p.Publish(t.Context(), kafka.To("orders", 0), lost); time.Since(start) < time.Second {
			t.Errorf("to the silent one: gave up after %s of 1s: %v", time.Since(start), err)
		} else if longshore.CodeOf(err) != longshore.CodeMaybeSent || !errors.Is(err, longshore.CodeTimeout) {
			t.Errorf("to the silent one: %v", err)
		}
		if err := publish(1, "second"); err != nil {
			t.Errorf("to the other: %v", err)
		}
	}
	m.heal()
	eventually(t, "it is published again", func() bool { return publish(0, "last") == nil })
	g := open(t, (&cluster{addrs: f.ListenAddrs(), topic: "orders", t: t}).group(kafka.GroupConfig{}))
	var got []string
	for _, d := range g.take(6) {
		if d.Origin.Partition == 0 {
			got = append(got, string(d.Body))
		}
		ack(t, d)
	}
	if strings.Join(got, " ") != "first last" {
		t.Errorf("partition 0 has %q", got)
	}
}
