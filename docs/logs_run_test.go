package docs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// canary is in what no line may show: bodies, headers, passwords.
const canary = "canary"

// places are a source on each transport; cut, if there is one, breaks its connection.
func places() map[string]func(t *testing.T) (src transport.Source, cut func()) {
	return map[string]func(t *testing.T) (transport.Source, func()){
		"memory": func(*testing.T) (transport.Source, func()) {
			return memory.New(memory.Config{}).Queue("orders", memory.QueueConfig{}), nil
		},
		"rabbitmq": func(t *testing.T) (transport.Source, func()) {
			s := amqptest.New(t, amqptest.Config{Users: []amqptest.User{{Name: "app", Password: canary}}})
			return amqp.New(s.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}), func() { s.Cut(nil) }
		},
		"kafka": func(t *testing.T) (transport.Source, func()) {
			c, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			return kafka.New(c.ListenAddrs(), kafka.Config{}).Group("billing", []string{"orders"}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 2, Replicas: 1}}), nil
		},
		"aws_sqs": func(t *testing.T) (transport.Source, func()) {
			return sqs.New(sqstest.New(t).Config()).Queue("orders", sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{}}}), nil
		},
	}
}

// outcomes does what the body asks for.
func outcomes(_ context.Context, d *longshore.Delivery) error {
	switch what, _, _ := strings.Cut(string(d.Body), " "); what {
	case "fail":
		return errors.New("no stock")
	case "reject":
		return longshore.Reject(errors.New("no such card"))
	case "discard":
		return longshore.Discard(errors.New("paid already"))
	case "panic":
		panic("a bug")
	}
	return nil
}

// On every transport a container writes the documented phrases with the documented
// fields, each once, and nothing of bodies, headers and passwords.
func TestContainersWriteDocumentedLines(t *testing.T) {
	lines, _ := logPage(t)
	for name, place := range places() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zapcore.DebugLevel)
			src, cut := place(t)
			c, err := container.New(src, longshore.HandlerFunc(outcomes), container.Config{Logger: zap.New(core),
				DeadLetter: container.DeadLetter{To: "orders-dlq"}, Middleware: []longshore.Middleware{middleware.Log(zap.New(core))},
				Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Millisecond}}})
			if err != nil {
				t.Fatal(err)
			}
			containertest.Start(t, c)
			for _, what := range []string{"ok", "fail", "fail", "reject", "reject", "discard", "panic"} {
				m := &longshore.Message{Key: []byte(what + strings.Repeat("k", 100)), Body: []byte(what + " " + canary)}
				m.Headers.Set("secret", canary)
				containertest.PublishMessages(t, c, m)
			}
			// SQS does not show a message that a poll's answer is bringing, so the container may
			// look idle before it has seen the last one.
			seen(t, logs, "delivery failed", "delivery dead-lettered", "delivery discarded", "handled")
			containertest.WaitIdle(t, c)
			if cut != nil {
				back := backAgain(t, c)
				cut()
				back()
				containertest.WaitIdle(t, c)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.Stop(ctx); err != nil {
				t.Fatal(err)
			}
			want := []string{"container starting", "container subscribed", "delivery failed", "delivery dead-lettered", "delivery discarded", "handled", "container drained", "container stopped"}
			if cut != nil {
				want = append(want, "consumer lost", "container recovering")
			}
			for _, phrase := range want {
				if logs.FilterMessage(phrase).Len() == 0 {
					t.Errorf("no line %q", phrase)
				}
			}
			for _, l := range logs.All() {
				documented(t, l, lines)
			}
		})
	}
}

// seen waits until each of the phrases was logged.
func seen(t *testing.T, logs *observer.ObservedLogs, phrases ...string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for slices.ContainsFunc(phrases, func(p string) bool { return logs.FilterMessage(p).Len() == 0 }) {
		select {
		case <-tick.C:
		case <-late.C:
			return // the test names what is missing
		}
	}
}

// backAgain returns a func that waits until the container has lost its consumer and has
// another one.
func backAgain(t *testing.T, c *container.ListenerContainer) func() {
	t.Helper()
	events, stop := c.Events(1000)
	return func() {
		defer stop()
		late := time.NewTimer(time.Minute)
		defer late.Stop()
		for lost := false; ; {
			select {
			case e := <-events:
				lost = lost || e.Kind == container.EventDown
				if lost && e.Kind == container.EventSubscribed {
					return
				}
			case <-late.C:
				t.Fatal("the container did not come back")
			}
		}
	}
}

// documented compares one line with the page.
func documented(t *testing.T, l observer.LoggedEntry, lines map[string]logLine) {
	t.Helper()
	doc, ok := lines[l.Message]
	if !ok || !slices.Contains(doc.levels, l.Level.String()) {
		t.Errorf("reference/logs.md has no line %q at %s", l.Message, l.Level)
	}
	var names []string
	for _, f := range l.Context {
		if f.Type == zapcore.SkipType {
			continue
		}
		if slices.Contains(names, f.Key) {
			t.Errorf("%q has %s twice", l.Message, f.Key)
		}
		names = append(names, f.Key)
		if !slices.Contains(anywhere(), f.Key) && !slices.Contains(doc.fields, f.Key) {
			t.Errorf("%q has the field %s, which reference/logs.md does not name", l.Message, f.Key)
		}
	}
	if strings.HasPrefix(l.Message, "delivery ") && (!slices.Contains(names, "container") || !slices.Contains(names, "code")) {
		t.Errorf("%q has %v: where it comes from, and its code?", l.Message, names)
	}
	facts := l.ContextMap()
	delete(facts, "stack") // a goroutine's own text
	if said := fmt.Sprint(l.Message, facts); strings.Contains(said, canary) {
		t.Errorf("%s shows what it must not", said)
	}
	if key, ok := facts["key"].(string); ok && len(key) > 64 {
		t.Errorf("%q has a key of %d bytes", l.Message, len(key))
	}
}
