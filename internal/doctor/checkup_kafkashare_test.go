package doctor

import (
	"strings"
	"testing"
)

// The settings of a share group that lose records, and a transaction that holds up a topic, are
// found; Kafka's defaults are not.
func TestKafkaShareAndOpenTransactions(t *testing.T) {
	warned := func(m map[string]string) (texts []string) {
		m["partitions"], m["replicas"], m["records"] = "1", "3", "5"
		for _, c := range checkKafka(m, 0) {
			if c.Level == Warn {
				texts = append(texts, c.Text)
			}
		}
		return texts
	}
	for want, m := range map[string]map[string]string{
		"after 2 deliveries": {"share.delivery.count.limit": "2"},
		"at most 100":        {"share.partition.max.record.locks": "100"},
		"does not renew":     {"share.renew.acknowledge.enable": "false"},
		"producer 5":         {"transactions.open": "orders/0 at offset 3: a transaction of producer 5"},
	} {
		if got := warned(m); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%v: warned %q, want %q", m, got, want)
		}
	}
	if got := warned(map[string]string{"share.delivery.count.limit": "5", "share.partition.max.record.locks": "2000", "share.renew.acknowledge.enable": "true"}); len(got) > 0 {
		t.Errorf("warned %q of the defaults", got)
	}
}
