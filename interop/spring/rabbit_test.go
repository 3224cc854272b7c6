package interop_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/amqp"
)

var discard = container.DeadLetter{Policy: container.DeadLetterDiscard}

func TestReadsWhatSpringAMQPWrites(t *testing.T) {
	onRabbit(t, "rabbit-write", nil, []string{"orders"},
		func(t *testing.T, url string) { java(t, "rabbit-write", "address", url, "queue", "orders") },
		func(t *testing.T, url string) {
			l := consumed(t, amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{}), 16, nil, discard)
			for name, want := range map[string]string{
				"class":      "paid {o-1 1250}",
				"mapped":     "canceled {o-2 late}",
				"headers":    "paid {o-6 4}",
				"gzip":       "paid {o-8 6}",
				"batch":      "paid {b-0 0}, paid {b-1 1}, paid {b-2 2}",
				"batch-gzip": "paid {b-0 0}, paid {b-1 1}, paid {b-2 2}",
				"list":       `other java.util.ArrayList application/json [{"id":"o-3","cents":1}]`,
				"map":        `other java.util.LinkedHashMap application/json {"o-4":{"id":"o-4","cents":2}}`,
				"text":       "other  text/plain grüße",
				"bytes":      "other  application/octet-stream \x00\x01\xff",
				"properties": `other order.own application/json {"id":"o-7","cents":5}`,
			} {
				if have := shown(l.of(name)); have != want {
					t.Errorf("%s: %s, want %s", name, have, want)
				}
			}
			checkAMQPHeaders(t, l)
			if s := l.of("serialized"); len(s) != 1 || s[0].m.ContentType != "application/x-java-serialized-object" || s[0].by != "other" {
				t.Errorf("%+v", s)
			}
		})
}

// shown is what handlers got, without headers.
func shown(gs []got) string {
	var all []string
	for _, g := range gs {
		if g.value != nil {
			all = append(all, fmt.Sprint(g.by, " ", g.value))
		} else {
			all = append(all, fmt.Sprintf("%s %s %s %s", g.by, g.m.Type, g.m.ContentType, g.m.Body))
		}
	}
	return strings.Join(all, ", ")
}

func checkAMQPHeaders(t *testing.T, l *ledger) {
	t.Helper()
	h := l.of("headers")
	if len(h) != 1 {
		t.Fatalf("%+v", h)
	}
	checkHeaders(t, h[0].m.Headers, map[string]any{
		"string": `grüße "q"`, "empty": "", "boolean": true, "byte": int8(-7), "short": int16(-300), "int": int32(-70_000), "long": int64(9_007_199_254_740_993),
		"float": float32(0.5), "double": 0.1, "decimal": longshore.Decimal{Scale: 2, Value: 1250}, "date": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "bytes": []byte{0, 0xff},
		"list": []any{"a", int32(1), true}, "map": longshore.Headers{{Name: "b", Value: int32(2)}}, "nothing": nil, "uuid": "00000000-0000-0000-0000-0000000000ff", "enum": "NEW",
		"__TypeId__": "com.acme.OrderPaid",
	})
	p := l.of("properties")
	if len(p) != 1 {
		t.Fatalf("%+v", p)
	}
	m := p[0].m
	if m.ID != "m-7" || m.CorrelationID != "c-7" || m.Type != "order.own" || m.AppID != "shop" || m.Priority != 3 || m.Expiration != time.Hour || m.ReplyTo != "answers" || m.DeliveryMode != 1 ||
		!m.Timestamp.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) || m.ContentType != "application/json" {
		t.Errorf("%+v", m)
	}
}

func checkHeaders(t *testing.T, hs longshore.Headers, want map[string]any) {
	t.Helper()
	for name, v := range want {
		have, ok := hs.Get(name)
		if at, is := have.(time.Time); is {
			have = at.UTC()
		}
		if !ok || !reflect.DeepEqual(have, v) {
			t.Errorf("header %s: %T %v, want %T %v", name, have, have, v, v)
		}
	}
}

// A batch is settled once: the part that fails brings all of them again, and what fails
// for good is dead as the one message that it was, so that Spring can take it apart.
func TestABatchOfSpringIsSettledOnce(t *testing.T) {
	onRabbit(t, "rabbit-write", nil, []string{"orders", "dead"},
		func(t *testing.T, url string) { java(t, "rabbit-write", "address", url, "queue", "orders") },
		func(t *testing.T, url string) {
			broken := func(g got, _ int) error {
				switch {
				case g.m.Headers.String("case") == "batch" && g.try == 1 && g.value == orderPaid{"b-1", 1},
					g.m.Headers.String("case") == "batch-gzip" && g.value == orderPaid{"b-2", 2}:
					return errors.New("no stock")
				}
				return nil
			}
			src := amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{})
			l := consumed(t, src, 10+2+3+6, broken, container.DeadLetter{To: "dead"})
			if have, want := shown(l.of("batch")), "paid {b-0 0}, paid {b-1 1}, paid {b-0 0}, paid {b-1 1}, paid {b-2 2}"; have != want {
				t.Errorf("%s, want %s", have, want)
			}
			if n := len(l.of("batch-gzip")); n != 6 {
				t.Errorf("%d calls for the one that fails for good", n)
			}
			left, dead := taken(t, url, "orders"), taken(t, url, "dead")
			if len(left) != 0 || len(dead) != 1 {
				t.Fatalf("%d left, %d dead", len(left), len(dead))
			}
			has := func(name, v string) bool {
				return slices.ContainsFunc(dead[0].Headers, func(f field) bool { return f.Name == name && f.Value == v })
			}
			if !has("springBatchFormat", "lengthHeader4") || !has("__TypeId__", "com.acme.OrderPaid") || !strings.HasPrefix(dead[0].Properties["content-encoding"], "gzip") {
				t.Errorf("%+v", dead[0])
			}
			if !strings.HasSuffix(t.Name(), "/spring") {
				return
			}
			written(t, channel(t, url), dead)
			var parts []string // as Spring takes the dead letter apart
			for _, n := range java(t, "rabbit-read", "address", url, "parameter", "orders", "typed", "dead", "messages", 3) {
				parts = append(parts, n.Listener+" "+n.Payload.String())
			}
			if have, want := strings.Join(parts, ", "), `paid com.acme.OrderPaid {"cents":0,"id":"b-0"}, paid com.acme.OrderPaid {"cents":1,"id":"b-1"}, paid com.acme.OrderPaid {"cents":2,"id":"b-2"}`; have != want {
				t.Errorf("%s, want %s", have, want)
			}
		})
}
