package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-L03: a message goes from RabbitMQ to Kafka to SQS by handlers that publish, with a
// retry on its way and a panic at its end that sends it to the dead letters. It is one
// trace, with tracestate, baggage and ten attributes of the user, and every span ends.
func TestOneTraceOverThreeBrokers(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s := sqstest.New(t)
		traceOverThree(t, amqptest.New(t, amqptest.Config{}).URL, newFake(t).ListenAddrs(), newSQSLab(t, s, s.URL, time.Minute))
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		traceOverThree(t, brokertest.AMQP(t), brokertest.Kafka(t), newSQSLab(t, nil, brokertest.SQS(t), 30*time.Second))
	})
}

// spanCount counts what begins and ends.
type spanCount struct{ begun, ended atomic.Int64 }

func (c *spanCount) OnStart(context.Context, sdktrace.ReadWriteSpan) { c.begun.Add(1) }
func (c *spanCount) OnEnd(sdktrace.ReadOnlySpan)                     { c.ended.Add(1) }
func (c *spanCount) Shutdown(context.Context) error                  { return nil }
func (c *spanCount) ForceFlush(context.Context) error                { return nil }

func traceOverThree(t *testing.T, rabbitURL string, kafkaAddrs []string, l *sqsLab) {
	var count spanCount
	spans := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSpanProcessor(&count))
	t.Cleanup(func() { _ = tp.Shutdown(context.Background()) })
	tel := telemetry.New(telemetry.Config{TracerProvider: tp})
	publisher := func(system string, p transport.Publisher, err error) transport.Publisher {
		if err != nil {
			t.Fatal(err)
		}
		p = tel.Publisher(system, p)
		t.Cleanup(func() { _ = p.Close(context.Background()) })
		return p
	}
	cfg := container.Config{Middleware: []longshore.Middleware{tel.Trace()}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep},
		Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Millisecond}}}

	// The last one: SQS.
	name, dead := l.queue("", nil), l.queue("", nil)
	last := cfg
	last.Redelivery.MaxAttempts, last.DeadLetter = 1, container.DeadLetter{To: dead}
	got := make(chan longshore.Headers, 1)
	consumeFrom(t, l.broker().Queue(name, sqs.QueueConfig{}), last, func(_ context.Context, d *longshore.Delivery) error {
		got <- d.Headers
		panic("boom")
	})
	sqsPublisher, err := l.broker().Publisher(sqs.PublisherConfig{})
	toSQS := publisher("aws_sqs", sqsPublisher, err)

	// The middle: Kafka, whose first attempt fails.
	k := newKafkaTopic(t, kafkaAddrs, 1)
	topic := k.name
	consumeFrom(t, k.group(kafka.GroupConfig{}), cfg, func(ctx context.Context, d *longshore.Delivery) error {
		if d.Attempt == 1 {
			return errors.New("not yet")
		}
		m := &longshore.Message{Body: d.Body}
		for i := range 10 {
			m.Headers.Set(fmt.Sprint("user-", i), fmt.Sprint(i))
		}
		return toSQS.Publish(ctx, name, m)
	})
	kafkaPublisher, err := k.broker.Publisher(kafka.PublisherConfig{})
	toKafka := publisher("kafka", kafkaPublisher, err)

	// The first: RabbitMQ.
	rabbit := amqp.New(rabbitURL, amqp.Config{})
	consumeFrom(t, rabbit.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}), cfg, func(ctx context.Context, d *longshore.Delivery) error {
		return toKafka.Publish(ctx, topic, &longshore.Message{Body: d.Body})
	})
	rabbitPublisher, err := rabbit.Publisher(amqp.PublisherConfig{})
	toRabbit := publisher("rabbitmq", rabbitPublisher, err)

	ctx, id := begunElsewhere(t)
	if err := toRabbit.Publish(ctx, "orders", &longshore.Message{Body: []byte("o-1")}); err != nil {
		t.Fatal(err)
	}
	select {
	case hs := <-got:
		carries(t, "what SQS gave", hs, id)
	case <-time.After(time.Minute):
		t.Fatal("nothing came through")
	}
	letters := make(chan longshore.Headers, 1)
	consumeFrom(t, l.broker().Queue(dead, sqs.QueueConfig{}), container.Config{}, func(_ context.Context, d *longshore.Delivery) error {
		letters <- d.Headers
		return nil
	})
	select {
	case hs := <-letters:
		carries(t, "the dead letter", hs, id)
	case <-time.After(time.Minute):
		t.Fatal("no dead letter came")
	}
	eventually(t, time.Minute, "every span has ended", func() bool { return count.begun.Load() == count.ended.Load() })
	ofOneTrace(t, spans.GetSpans(), id, map[string]int{
		"publish orders": 1, "process orders": 1, "publish " + topic: 1, "process " + topic: 2, "publish " + name: 1, "process " + name: 1,
	}, "process "+name)
}

// begunElsewhere is a context as a request brings it: a trace with a state, and baggage.
func begunElsewhere(t *testing.T) (context.Context, trace.TraceID) {
	t.Helper()
	state, err := trace.ParseTraceState("vendor=opaque")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.Parse("tenant=t-1")
	if err != nil {
		t.Fatal(err)
	}
	id := trace.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	from := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	return trace.ContextWithSpanContext(baggage.ContextWithBaggage(t.Context(), bag), from), id
}

func carries(t *testing.T, what string, hs longshore.Headers, id trace.TraceID) {
	t.Helper()
	if !strings.Contains(hs.String("traceparent"), id.String()) || hs.String("tracestate") != "vendor=opaque" || hs.String("baggage") != "tenant=t-1" {
		t.Errorf("%s is of another trace: %v", what, hs)
	}
	for i := range 10 {
		if hs.String(fmt.Sprint("user-", i)) != fmt.Sprint(i) {
			t.Errorf("%s has lost user-%d: %v", what, i, hs)
		}
	}
}

// ofOneTrace compares spans: all of the trace, each below one of the others or of what
// began it, as many of each name as wanted, and in error where a handler panicked.
func ofOneTrace(t *testing.T, all tracetest.SpanStubs, id trace.TraceID, want map[string]int, panicked string) {
	t.Helper()
	known := map[trace.SpanID]bool{{1}: true}
	names := map[string]int{}
	for _, s := range all {
		known[s.SpanContext.SpanID()] = true
		names[s.Name]++
	}
	for _, s := range all {
		if s.SpanContext.TraceID() != id || !known[s.Parent.SpanID()] {
			t.Errorf("%s is in trace %s below %s", s.Name, s.SpanContext.TraceID(), s.Parent.SpanID())
		}
		if s.Name == panicked && (s.Status.Code != codes.Error || !strings.Contains(s.Status.Description, "panic")) {
			t.Errorf("%s: %+v", s.Name, s.Status)
		}
	}
	for name, n := range want {
		if names[name] != n {
			t.Errorf("%d spans %q, want %d: %v", names[name], name, n, names)
		}
	}
}
