package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// kafkaIncident is a topic of a real broker and its group, of the topic's name.
type kafkaIncident struct {
	t        *testing.T
	addrs    []string
	topic    string
	protocol kafka.Protocol // of the group
}

// onRealKafka runs a test on a topic of its own with groups of both protocols, which a broker
// describes by different requests.
func onRealKafka(t *testing.T, f func(t *testing.T, k *kafkaIncident)) {
	t.Helper()
	addrs := brokertest.Kafka(t)
	t.Parallel()
	for name, protocol := range map[string]kafka.Protocol{"classic": kafka.Classic, "consumer": kafka.Consumer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &kafkaIncident{t, addrs, brokertest.Name(t, "doctor"), protocol}
			k.create(k.topic)
			f(t, k)
		})
	}
}

// create makes topics of two partitions and waits until the broker knows them.
func (k *kafkaIncident) create(topics ...string) {
	k.t.Helper()
	src := kafka.New(k.addrs, kafka.Config{}).Group(k.topic+".creates", topics, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 2}})
	c, err := src.Open(k.t.Context(), transport.OpenOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	if err := c.Close(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; <-time.After(100 * time.Millisecond) {
		_, err := kafka.New(k.addrs, kafka.Config{}).Group(k.topic+".creates", topics, kafka.GroupConfig{}).Settings(k.t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			k.t.Fatal(err)
		}
	}
}

// member opens a member of the group under a client id.
func (k *kafkaIncident) member(id string, topics ...string) transport.Consumer {
	k.t.Helper()
	b := kafka.New(k.addrs, kafka.Config{ClientID: id, Options: []kgo.Opt{kgo.HeartbeatInterval(300 * time.Millisecond)}})
	c, err := b.Group(k.topic, topics, kafka.GroupConfig{Protocol: k.protocol}).Open(k.t.Context(), transport.OpenOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			k.t.Error(err)
		}
	})
	return c
}

func (k *kafkaIncident) publish(n int) {
	k.t.Helper()
	p, err := kafka.New(k.addrs, kafka.Config{}).Publisher(kafka.PublisherConfig{})
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	for range n {
		if err := p.Publish(k.t.Context(), kafka.To(k.topic, 0), &longshore.Message{Body: []byte("x")}); err != nil {
			k.t.Fatal(err)
		}
	}
}

// says waits until doctor says all of the texts in one report, and none of the others.
func (k *kafkaIncident) says(wanted, unwanted []string) {
	k.t.Helper()
	src := kafka.New(k.addrs, kafka.Config{}).Group(k.topic, []string{k.topic}, kafka.GroupConfig{})
	for end := time.Now().Add(40 * time.Second); ; {
		checks, err := Checkup(k.t.Context(), Patient{Source: src})
		if err != nil {
			k.t.Fatal(err)
		}
		text, good := said(checks), true
		for _, w := range wanted {
			good = good && strings.Contains(text, w)
		}
		for _, u := range unwanted {
			good = good && !strings.Contains(text, u)
		}
		if good {
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("want %q and not %q, doctor says\n%s", wanted, unwanted, text)
		}
		<-time.After(200 * time.Millisecond)
	}
}

// F-N34: a second program in the group takes half of the partitions.
func TestDoctorNamesASecondVersionOnKafka(t *testing.T) {
	onRealKafka(t, func(t *testing.T, k *kafkaIncident) {
		k.member("billing v2", k.topic)
		k.member("billing v1", k.topic)
		k.publish(1)
		k.says([]string{`different clients share its partitions: 1 of "billing v1" from`, `1 of "billing v2" from`}, []string{"no member"})
	})
}

// F-N34: a record whose handler does not end holds its partition.
func TestDoctorNamesABlockedPartitionOnKafka(t *testing.T) {
	onRealKafka(t, func(t *testing.T, k *kafkaIncident) {
		k.member("billing", k.topic)
		k.publish(3)
		k.says([]string{"the group's position does not move: partition 0 at"}, []string{"no member", "no record was ever written", "different clients"})
	})
}

// F-N34: a topic whose name is wrong is there, empty, and read.
func TestDoctorNamesATopicThatNeverReceivedOnKafka(t *testing.T) {
	onRealKafka(t, func(t *testing.T, k *kafkaIncident) {
		k.member("billing", k.topic)
		k.says([]string{"no record was ever written to this topic"}, []string{"no member", "does not move"})
	})
}

// F-N34: members of the group that read other topics do not count for this one.
func TestDoctorCountsOnlyMembersOfTheTopicOnKafka(t *testing.T) {
	onRealKafka(t, func(t *testing.T, k *kafkaIncident) {
		k.create(k.topic + ".other")
		k.member("billing", k.topic+".other")
		k.says([]string{"no member of the group reads this topic, 1 reads others"}, nil)
	})
}

// F-N34: the same for a container, whose handler hangs.
func TestDoctorAndAHungHandlerOnKafka(t *testing.T) {
	onRealKafka(t, func(t *testing.T, k *kafkaIncident) {
		release := make(chan struct{})
		b := kafka.New(k.addrs, kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(300 * time.Millisecond)}})
		c, err := container.New(b.Group(k.topic, []string{k.topic}, kafka.GroupConfig{Protocol: k.protocol}),
			longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return nil
			}), container.Config{Order: container.ByKey, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			close(release)
			var drain *container.DrainError
			if err := c.Stop(context.Background()); err != nil && !errors.As(err, &drain) {
				t.Error(err)
			}
		}()
		k.publish(5)
		k.says([]string{"the group's position does not move: partition 0 at"}, []string{"no member"})
	})
}
