package kafka_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka"
)

// What no transaction can write is refused to its own handler: the others' results, and their
// positions, do not wait for it. A handler that publishes nothing is like one that does not
// publish.
func TestWhatNoTransactionCanWriteIsRefused(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	out := c.withOut(2)
	c.produce(0, 3, 3, 0)
	m := open(t, kafka.New(c.addrs, kafka.Config{Outlet: kafka.PublisherConfig{MaxBatchBytes: 2000}}).
		Group(c.topic, []string{c.topic}, kafka.GroupConfig{Transactional: &kafka.Transactional{}}))
	ds := m.take(3)
	for name, refused := range map[string]struct {
		dest string
		body int
		want longshore.Code
	}{
		"a partition that does not exist":         {kafka.To(out, 99), 1, longshore.CodeNotFound},
		"larger than the client's largest batch":  {out, 3000, longshore.CodeTooLarge},
		"a partition beyond, of a known topic":    {kafka.To(out, 2), 1, longshore.CodeNotFound},
		"a topic that does not exist":             {"nowhere", 1, longshore.CodeNotFound},
		"larger, to a partition that does exist ": {kafka.To(out, 1), 3000, longshore.CodeTooLarge},
	} {
		if err := kafka.TxOf(ds[0]).Publish(t.Context(), refused.dest, &longshore.Message{Body: bytes.Repeat([]byte("x"), refused.body)}); !errors.Is(err, refused.want) {
			t.Errorf("%s: %v, want %s", name, err, refused.want)
		}
	}
	if err := kafka.TxOf(ds[1]).Publish(t.Context(), out); err != nil {
		t.Errorf("nothing: %v", err)
	}
	pass(t, out, ds[2])
	ack(t, ds...)
	m.flush()
	c.waitCommitted(0, 3)
	if got := c.results(out, 1); len(got) != 1 {
		t.Errorf("%d results, want 1", len(got))
	}
}
