package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A foreign producer leaves a transaction open: the partition waits for it, which the notice, the
// blocked partitions and the backlog say; the end of the transaction ends all three. Doctor reads
// it from the settings.
func TestOpenTransactionIsReported(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		src := c.group(kafka.GroupConfig{})
		m := open(t, src)
		cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.TransactionalID(c.topic+"-foreign"), kgo.DefaultProduceTopic(c.topic))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("open")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		id, _, err := cl.ProducerID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.produce(0, 3, 1, 0)
		backlog := func() int64 {
			n, _, err := m.Consumer.(transport.Backlogger).Backlog(context.Background()) //nolint:errcheck // it is one
			if err != nil {
				t.Error(err)
			}
			return n
		}
		blocked := func() []transport.BlockedPartition {
			return m.Consumer.(transport.HeadReporter).BlockedPartitions() //nolint:errcheck // it is one
		}
		eventuallyIn(t, 40*time.Second, func() string { return "a blocked partition" }, func() bool { return len(blocked()) == 1 })
		b := blocked()[0]
		if want := fmt.Sprintf("producer %d (transactional id %q) is open since", id, c.topic+"-foreign"); !strings.Contains(b.Cause, want) || b.Position != 0 || b.Behind < 4 || !b.Full() {
			t.Errorf("blocked %+v, want %q at offset 0 with 4 behind", b, want)
		}
		if n := backlog(); n < 4 {
			t.Errorf("backlog %d, want what waits behind the transaction", n)
		}
		if told := m.told(transport.EventNotice); !strings.Contains(strings.Join(told, "\n"), "abort --topic "+c.topic+" --partition 0 --start-offset 0") {
			t.Errorf("told %q", told)
		}
		settings, err := src.(transport.SettingsReader).Settings(t.Context()) //nolint:errcheck // it is one
		if err != nil || !strings.Contains(settings["transactions.open"], c.topic+"/0 at offset 0") {
			t.Errorf("settings say %q, %v", settings["transactions.open"], err)
		}
		if err := cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		ack(t, m.take(3)...)
		eventuallyIn(t, 40*time.Second, func() string { return "the all-clear" }, func() bool {
			return len(m.told(transport.EventCleared)) > 0 && len(blocked()) == 0
		})
	})
}
