package kafka_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-K05: every difference in one error, nothing created or altered; what Declare
// leaves open is not compared, and without Declare the topic is consumed.
func TestTopicThatDiffersIsNamed(t *testing.T) {
	t.Parallel()
	differs(t, embeddedCluster(t, 1))
}

func TestRealTopicThatDiffersIsNamed(t *testing.T) {
	t.Parallel()
	differs(t, realCluster(t, brokertest.Kafka(t), 1))
}

func differs(t *testing.T, c *cluster) {
	t.Helper()
	adm, fresh := admin(t, c.addrs), c.topic+".fresh"
	made := func(name string, settings map[string]*string) {
		t.Helper()
		if _, err := adm.CreateTopic(t.Context(), 2, 1, settings, name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = adm.DeleteTopics(context.Background(), name) })
	}
	kept := c.topic + ".kept"
	made(kept, map[string]*string{"retention.ms": kmsg.StringPtr("1000000"), "cleanup.policy": kmsg.StringPtr("compact,delete")})
	eventually(t, "the topic is there", func() bool {
		ts, err := adm.ListTopics(t.Context(), kept)
		return err == nil && len(ts[kept].Partitions) == 2
	})
	try := func(d kafka.Declare, topics ...string) error {
		m, err := c.broker().Group(c.topic, topics, kafka.GroupConfig{Declare: d}).Open(t.Context(), transport.OpenOptions{})
		if err == nil {
			err = m.Close(t.Context())
		}
		return err
	}
	err := try(kafka.Declare{Partitions: 3, Replicas: 2, Settings: map[string]string{"retention.ms": "5"}}, c.topic, kept, fresh)
	var typed *longshore.Error
	if !errors.As(err, &typed) || typed.Code != longshore.CodeMismatch || typed.Hint == "" {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{
		`topic "` + c.topic + `": Partitions is 1 there, 3 here`, `topic "` + kept + `": Partitions is 2 there, 3 here`,
		`topic "` + kept + `": Replicas is 1 there, 2 here`, `topic "` + kept + `": retention.ms is "1000000" there, "5" here`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwithout: %s", err, want)
		}
	}
	if ts, err := adm.ListTopics(t.Context()); err != nil || ts.Has(fresh) || len(ts[kept].Partitions) != 2 {
		t.Errorf("created or altered: %v, %v", ts.Names(), err)
	}
	for what, d := range map[string]kafka.Declare{
		"none": {}, "partitions alone": {Partitions: 2},
		"all": {Partitions: 2, Replicas: 1, Settings: map[string]string{"retention.ms": "1000000", "cleanup.policy": "delete, compact"}},
	} {
		if err := try(d, kept); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
