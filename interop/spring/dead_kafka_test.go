package interop_test

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/dlq"
)

func TestDeadLettersOfSpringKafka(t *testing.T) {
	onKafka(t, "kafka-fail", []string{"orders", "orders.dead"}, 4,
		func(t *testing.T, l logs) {
			java(t, "kafka-fail", "address", l.address(), "topic", l.topics["orders"], "group", l.topics["orders"], "dead", l.topics["orders.dead"])
		},
		func(t *testing.T, l logs) {
			url := "kafka://" + l.address() + "/" + l.topics["orders.dead"]
			dead := letters(t, url)
			if len(dead) != 2 {
				t.Fatalf("%d letters", len(dead))
			}
			causes := []string{"com.acme.StockException", "tools.jackson.core.exc.StreamReadException"}
			for i, reason := range []string{"java.lang.IllegalStateException", "org.springframework.kafka.support.serializer.DeserializationException"} {
				f := dead[i].Facts
				want(t, "who", f.Who, "spring-kafka")
				want(t, "reason", f.Reason, reason)
				if !strings.HasPrefix(f.Source, "spring-") || f.To != f.Source || f.By != f.Source {
					t.Errorf("from %q to %q by %q", f.Source, f.To, f.By)
				}
				details := map[string]string{}
				for _, d := range f.Details {
					details[d.Name] = d.Value
				}
				if !strings.HasSuffix(details["original record"], []string{"/0 offset 0", "/0 offset 1"}[i]) || !strings.Contains(details["exception-stacktrace"], "Caused by: "+causes[i]) {
					t.Errorf("%v", details)
				}
				if m := dlq.Restore(dead[i].Delivery); strings.Contains(headerNames(m), "kafka_") || strings.Contains(headerNames(m), "springDeserializer") {
					t.Error(headerNames(m))
				}
			}
			want(t, "error", dead[0].Facts.Error, "Listener failed; while paying: no stock for k-1")
			want(t, "error", dead[1].Facts.Error, "failed to deserialize: Unrecognized token")
			want(t, "body", string(dead[0].Body), `{"id":"f-1","cents":1}`)
			want(t, "body", string(dead[1].Body), "no json")
			if strings.HasSuffix(t.Name(), "/spring") {
				list := command(t, "dlq", "list", url)
				if !strings.Contains(list, "java.lang.IllegalStateException") || !strings.Contains(list, "no stock for k-1") {
					t.Error(list)
				}
				show := command(t, "dlq", "show", url, dlq.ID(dead[1].Delivery))
				if !strings.Contains(show, "StreamReadException") || !strings.Contains(show, "no json") || !strings.Contains(show, "offset 1") {
					t.Error(show)
				}
				l.replayed(t, dead[0], url, l.topics["orders"], `com.acme.OrderPaid {"cents":1,"id":"f-1"}`)
			}
		})
}

func headerNames(m *longshore.Message) string {
	var names []string
	for _, h := range m.Headers {
		names = append(names, h.Name)
	}
	return strings.Join(names, " ")
}

// The dead-letter topics of @RetryableTopic: behind one retry topic for all attempts,
// which is the default, and behind one for each.
func TestDeadLettersOfSpringsRetryTopics(t *testing.T) {
	onKafka(t, "kafka-retry", []string{"orders", "orders-retry", "orders-dlt", "orders-growing", "orders-growing-retry-0", "orders-growing-retry-1", "orders-growing-dlt"}, 8,
		func(t *testing.T, l logs) {
			java(t, "kafka-retry", "address", l.address(), "topic", l.topics["orders"], "growing", l.topics["orders-growing"], "group", l.topics["orders"])
		},
		func(t *testing.T, l logs) {
			for _, first := range []string{"orders", "orders-growing"} {
				l.checkRetried(t, first)
			}
		})
}

func (l logs) checkRetried(t *testing.T, first string) {
	t.Helper()
	url := "kafka://" + l.address() + "/" + l.topics[first+"-dlt"]
	dead := letters(t, url)
	if len(dead) != 1 {
		t.Fatalf("%s: %d letters", first, len(dead))
	}
	f := dead[0].Facts
	want(t, "who", f.Who, "spring-kafka")
	want(t, "reason", f.Reason, "com.acme.StockException")
	want(t, "error", f.Error, "Listener failed; no stock for r-1")
	if f.Attempts != 3 || !strings.HasPrefix(f.Source, "spring-") || strings.Contains(f.Source, "retry") || f.To != f.Source || f.By != f.Source {
		t.Errorf("%d attempts, from %q to %q by %q", f.Attempts, f.Source, f.To, f.By)
	}
	m := dlq.Restore(dead[0].Delivery)
	if strings.Contains(headerNames(m), "retry") || strings.Contains(headerNames(m), "kafka_") || m.Headers.String("__TypeId__") != "com.acme.OrderPaid" {
		t.Error(headerNames(m))
	}
	if !strings.HasSuffix(t.Name(), "/spring") {
		return
	}
	if list := command(t, "dlq", "list", url); !strings.Contains(list, "com.acme.StockException") || !strings.Contains(list, "no stock for r-1") {
		t.Error(list)
	}
	show := command(t, "dlq", "show", url, dlq.ID(dead[0].Delivery))
	for _, part := range []string{"spring-kafka", l.topics[first], "com.acme.StockException", "KafkaRetries$Listener.paid", `{"id":"r-1","cents":1}`} {
		if !strings.Contains(show, part) {
			t.Errorf("no %s in %s", part, show)
		}
	}
	l.replayed(t, dead[0], url, l.topics[first], `com.acme.OrderPaid {"cents":1,"id":"r-1"}`)
}

// replayed puts a dead letter back where it was sent, and lets a listener of Spring read
// the topic: payload first as it was sent, then as it was replayed.
func (l logs) replayed(t *testing.T, dead dlq.Letter, url, topic, payload string) {
	t.Helper()
	command(t, "dlq", "replay", url, "--id", dlq.ID(dead.Delivery), "--yes")
	all := java(t, "kafka-read", "address", l.address(), "topic", topic, "group", topic+"-again", "messages", 2)
	if len(all) != 2 {
		t.Fatalf("%d messages", len(all))
	}
	healed(t, all[1], payload)
}
