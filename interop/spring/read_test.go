package interop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
)

// message is one for a listener of Spring, which chooses by a header.
func message(typeHeader, class, body string, more ...longshore.Header) *longshore.Message {
	m := &longshore.Message{ID: "m-1", Key: []byte("k-1"), Type: "order.paid", CorrelationID: "c-1", ContentType: "application/json", Body: []byte(body), Timestamp: time.Now(),
		Headers: longshore.Headers{{Name: "tenant", Value: "grüße"}, {Name: "count", Value: int32(7)}, {Name: "flag", Value: true}}}
	if class != "" {
		m.Headers.Set(typeHeader, class)
	}
	m.Headers = append(m.Headers, more...)
	return m
}

func sent(t *testing.T, pub transport.Publisher, to string, msgs ...*longshore.Message) {
	t.Helper()
	if err := errors.Join(pub.Publish(bounded(t), to, msgs...), pub.Close(bounded(t))); err != nil {
		t.Fatal(err)
	}
}

// given up lets one message die in a container that sends it to a listener of Spring.
func givenUp(t *testing.T, src transport.Source, to string) {
	t.Helper()
	dead := make(chan struct{})
	c, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return errors.New("no stock") }),
		container.Config{Name: "shop", DeadLetter: container.DeadLetter{To: to}, Redelivery: container.Redelivery{MaxAttempts: 1}, Logger: zap.NewNop(),
			OnEvent: func(e container.Event) {
				if e.Kind == container.EventDeadLettered {
					close(dead)
				}
			}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(bounded(t)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-dead:
	case <-time.After(patience):
		t.Error("it does not die")
	}
	if err := c.Stop(bounded(t)); err != nil {
		t.Error(err)
	}
}

// heard checks what a listener got; headers are compared with their Java classes.
func heard(t *testing.T, all []noted, listener, payload string, headers map[string]string) {
	t.Helper()
	var others []string
	for _, n := range all {
		if n.Listener != listener || n.Payload.String() != payload {
			others = append(others, fmt.Sprint(n.Listener, " ", n.Payload))
			continue
		}
		for name, v := range headers {
			if have := n.Headers[name].String(); have != v {
				t.Errorf("%s %s: header %s is %q, want %q", listener, payload, name, have, v)
			}
		}
		if byType := listener == "paid" || listener == "canceled"; byType && (n.Tenant == nil || *n.Tenant != "grüße") {
			t.Errorf("%s %s: the parameter is %v", listener, payload, n.Tenant)
		}
		return
	}
	t.Errorf("%s never got %s; there were %s", listener, payload, strings.Join(others, "; "))
}

// healed checks a dead letter of Spring that was replayed and that Spring read.
func healed(t *testing.T, n noted, payload string) {
	t.Helper()
	if n.Listener != "paid" || n.Payload.String() != payload || n.Headers["longshore-dead-replays"].Value == nil {
		t.Errorf("%s got %s with %v", n.Listener, n.Payload, n.Headers)
	}
	for name := range n.Headers {
		if strings.Contains(name, "exception") || strings.Contains(name, "original") || strings.Contains(name, "retry_") {
			t.Errorf("%s is left", name)
		}
	}
}

const (
	paidOne = `{"id":"o-1","cents":1250}`
	paid    = `com.acme.OrderPaid {"cents":1250,"id":"o-1"}`
)

func TestSpringAMQPReadsWhatIsWrittenHere(t *testing.T) {
	needJava(t)
	url := brokertest.AMQP(t)
	declared(t, channel(t, url), nil, "orders", "parameter", "typed")
	b := amqp.New(url, amqp.Config{})
	pub := func() transport.Publisher {
		p, err := b.Publisher(amqp.PublisherConfig{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	sent(t, pub(), "parameter", message("", "", paidOne)) // the listener's parameter says the class
	sent(t, pub(), "typed", message("__TypeId__", "com.acme.OrderPaid", paidOne), message("__TypeId__", "order.canceled", `{"id":"o-2","reason":"late"}`))
	sent(t, pub(), "orders", message("__TypeId__", "com.acme.OrderPaid", `{"id":"o-3","cents":3}`))
	givenUp(t, b.Queue("orders", amqp.QueueConfig{}), "typed")

	all := java(t, "rabbit-read", "address", url, "parameter", "parameter", "typed", "typed", "messages", 4)
	headers := map[string]string{"tenant": "String grüße", "count": "Integer 7", "flag": "Boolean true", "amqp_type": "String order.paid", "amqp_correlationId": "String c-1", "amqp_messageId": "String m-1"}
	heard(t, all, "parameter", paid, headers)
	heard(t, all, "paid", paid, headers)
	heard(t, all, "canceled", `com.acme.OrderCanceled {"id":"o-2","reason":"late"}`, headers)
	heard(t, all, "paid", `com.acme.OrderPaid {"cents":3,"id":"o-3"}`, map[string]string{"tenant": "String grüße", "count": "Integer 7",
		"longshore-dead-error": "String no stock", "longshore-dead-source": "String orders", "longshore-dead-attempts": "Long 1"})
}

func TestSpringKafkaReadsWhatIsWrittenHere(t *testing.T) {
	needJava(t)
	l := newLogs(t, brokertest.Kafka(t), "orders", "orders.dead")
	b := kafka.New(l.addrs, kafka.Config{})
	pub := func() transport.Publisher {
		p, err := b.Publisher(kafka.PublisherConfig{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	gone := message("", "", "")
	gone.Body = nil
	sent(t, pub(), l.topics["orders.dead"], message("__TypeId__", "com.acme.OrderPaid", paidOne), message("__TypeId__", "order.canceled", `{"id":"o-2","reason":"late"}`), gone)
	sent(t, pub(), l.topics["orders"], message("__TypeId__", "com.acme.OrderPaid", `{"id":"o-3","cents":3}`))
	givenUp(t, b.Group(l.topics["orders"], []string{l.topics["orders"]}, kafka.GroupConfig{}), l.topics["orders.dead"])

	all := java(t, "kafka-read", "address", l.address(), "topic", l.topics["orders.dead"], "group", l.topics["orders.dead"], "messages", 4)
	headers := map[string]string{"tenant": "[B grüße", "count": "[B 7", "flag": "[B true", "content-type": "[B application/json", "kafka_receivedMessageKey": "String k-1"}
	heard(t, all, "paid", paid, headers)
	heard(t, all, "canceled", `com.acme.OrderCanceled {"id":"o-2","reason":"late"}`, headers)
	heard(t, all, "tombstone", "null ", headers)
	heard(t, all, "paid", `com.acme.OrderPaid {"cents":3,"id":"o-3"}`, map[string]string{"tenant": "[B grüße",
		"longshore-dead-error": "[B no stock", "longshore-dead-source": "[B " + l.topics["orders"], "longshore-dead-attempts": "[B 1"})
}

func TestSpringCloudAWSReadsWhatIsWrittenHere(t *testing.T) {
	needJava(t)
	orders, dead := newStand(t, brokertest.SQS(t)), newStand(t, brokertest.SQS(t))
	pub := func() transport.Publisher {
		p, err := orders.broker().Publisher(sqs.PublisherConfig{NoGroups: true})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	sent(t, pub(), dead.queue, message("JavaType", "com.acme.OrderPaid", paidOne))
	sent(t, pub(), orders.queue, message("JavaType", "com.acme.OrderPaid", `{"id":"o-3","cents":3}`))
	givenUp(t, orders.source(), dead.queue)

	all := java(t, "sqs-read", "address", dead.endpoint, "queue", dead.queue, "messages", 2)
	heard(t, all, "container", paid, map[string]string{"tenant": "String grüße", "flag": "String true", "content-type": "String application/json"})
	heard(t, all, "container", `com.acme.OrderPaid {"cents":3,"id":"o-3"}`, nil) // of its headers SQS shows ten
}
