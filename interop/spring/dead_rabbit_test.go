package interop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/urls"
)

// letters are dead letters as `longshore dlq` finds them.
func letters(t *testing.T, url string) (all []dlq.Letter) {
	t.Helper()
	src, err := urls.Options{DeadLetters: true, NoConsumer: true, BrowseCounts: true}.Source(url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dlq.Look(bounded(t), src, 100, func(l dlq.Letter) bool { all = append(all, l); return true }); err != nil {
		t.Fatal(err)
	}
	return all
}

// want compares what is known of a letter with its beginning.
func want(t *testing.T, name, have, want string) {
	t.Helper()
	if !strings.HasPrefix(have, want) {
		t.Errorf("%s: %.200q, want %q", name, have, want)
	}
}

func TestDeadLettersOfSpringAMQP(t *testing.T) {
	queues := []string{"orders", "rejects", "dead", "rejected", "none"}
	onRabbit(t, "rabbit-fail", map[string]string{"rejects": "rejected"}, queues,
		func(t *testing.T, url string) {
			java(t, "rabbit-fail", "address", url, "exchange", "", "queue", "orders", "rejects", "rejects", "dead", "dead")
		},
		func(t *testing.T, url string) {
			dead := letters(t, url+"?queue=dead")
			if len(dead) < 2 { // a third one, which Spring cuts to what a frame holds, is not kept
				t.Fatalf("%d letters", len(dead))
			}
			for i, l := range dead {
				f := l.Facts
				want(t, "who", f.Who, "spring-amqp")
				want(t, "error", f.Error, "while paying")
				want(t, "from", f.Source, "orders")
				want(t, "to", f.To, amqp.To("", "orders"))
				if i > 0 { // with a stack trace, which Spring AMQP 4.1 leaves out by itself
					want(t, "reason", f.Reason, "com.acme.StockException")
					want(t, "error", f.Error, "while paying: no stock")
					if len(f.Details) == 0 || !strings.Contains(f.Details[0].Value, "RabbitFails.fail") {
						t.Errorf("no stack: %.300v", f.Details)
					}
				}
				m := dlq.Restore(l.Delivery)
				if strings.Contains(headerNames(m), "x-") || m.Headers.String("__TypeId__") != "com.acme.OrderPaid" || m.ContentType != "application/json" {
					t.Errorf("%.1000v", m)
				}
			}
			rejected := letters(t, url+"?queue=rejected")
			if len(rejected) != 1 || rejected[0].Facts.Reason != "rejected" || rejected[0].Facts.Source != "rejects" || rejected[0].Facts.Who != "rabbitmq" {
				t.Errorf("%+v", rejected)
			}
			if !strings.HasSuffix(t.Name(), "/spring") {
				return
			}
			list := command(t, "dlq", "list", url+"?queue=dead", "--force")
			if strings.Count(list, "com.acme.StockException") != 2 || !strings.Contains(list, "no stock") {
				t.Error(list)
			}
			show := command(t, "dlq", "show", url+"?queue=dead", dlq.ID(dead[1].Delivery), "--force")
			for _, part := range []string{"spring-amqp", "com.acme.StockException", "RabbitFails.fail", `{"id":"f-2","cents":2}`} {
				if !strings.Contains(show, part) {
					t.Errorf("no %s in %s", part, show)
				}
			}
			command(t, "dlq", "replay", url+"?queue=dead", "--yes")
			command(t, "dlq", "replay", url+"?queue=rejected", "--yes")
			for _, queue := range []string{"orders", "rejects"} {
				n := map[string]int{"orders": len(dead), "rejects": 1}[queue]
				for _, again := range java(t, "rabbit-read", "address", url, "parameter", "none", "typed", queue, "messages", n) {
					id := again.Payload.Value.(map[string]any)["id"].(string) //nolint:errcheck // it is one
					healed(t, again, fmt.Sprintf(`com.acme.OrderPaid {"cents":%s,"id":"%s"}`, id[2:], id))
				}
			}
		})
}
