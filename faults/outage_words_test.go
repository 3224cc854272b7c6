package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-N34: the words of an outage, in a real one. The only broker is killed for longer than
// the watcher waits, and comes back: the loss comes before the recovery, has the code of a
// broker that is away, and no line says what did not happen.
func TestKafkaOutageIsToldInOrder(t *testing.T) {
	t.Parallel()
	node := brokertest.FaultKafka(t)
	core, logs := observer.New(zapcore.InfoLevel)
	k, l := newKafkaTopic(t, node.Addrs, 2), oracle.New()
	c := consumeFrom(t, k.group(kafka.GroupConfig{SessionTimeout: 4 * time.Second}), container.Config{Name: "words", Logger: zap.New(core), Reopen: quickly,
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, func(_ context.Context, d *longshore.Delivery) error {
		l.Begin(string(d.Body), string(d.Key))(d.Owned())
		return nil
	})
	k.publish(l, 0, 20, 5)
	eventually(t, 60*time.Second, "all are handled", func() bool { return l.Done() == 20 })
	node.Kill()
	eventually(t, 60*time.Second, "the outage is noticed", func() bool { return c.State() == container.StateRecovering })
	node.Start()
	eventually(t, 90*time.Second, "it is over", func() bool { return c.State() == container.StateRunning })
	k.publish(l, 20, 20, 5)
	eventually(t, 60*time.Second, "all are handled", func() bool { return l.Done() == 40 })
	stops(t, c)
	lines := wordsOf(t, logs)
	if strings.Contains(strings.Join(lines, " "), "wait at the broker") {
		t.Error("nothing waits at Kafka")
	}
	lost := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "consumer lost") })
	back := -1
	for i, line := range lines {
		if strings.HasPrefix(line, "container subscribed") || strings.HasPrefix(line, "consumer reconnected") {
			back = i
		}
	}
	if lost < 0 || back < lost || !strings.Contains(lines[max(lost, 0)], "code="+string(longshore.CodeUnreachable)) {
		t.Errorf("lost in line %d, back in line %d of\n%s", lost, back, strings.Join(lines, "\n"))
	}
	if n := slices.IndexFunc(lines[back+1:], func(s string) bool { return strings.HasPrefix(s, "consumer lost") }); n >= 0 {
		t.Errorf("lost again after it was back:\n%s", strings.Join(lines, "\n"))
	}
}

// wordsOf are the log's lines with what a person reads in them. None of them may say what
// did not happen, or advise what cannot help.
func wordsOf(t *testing.T, logs *observer.ObservedLogs) (lines []string) {
	t.Helper()
	for _, e := range logs.All() {
		line := e.Message
		for _, f := range e.Context {
			if f.Key == "code" || f.Key == "text" || f.Key == "error" || f.Key == "help" {
				line += " " + f.Key + "=" + f.String
			}
		}
		lines = append(lines, line)
		if e.Message == "delivery failed" { // its words are the handler's
			continue
		}
		for _, never := range []string{"code=handler", "somebody else", "handlers cancelled", "let handlers obey", "look why the partition's leader", "before its handler", "raise DrainTimeout"} {
			if strings.Contains(line, never) {
				t.Errorf("%q says %q", line, never)
			}
		}
	}
	return lines
}

// F-N34: the words of a freeze: connections stand, and nothing answers. A retry is parked,
// acknowledgements are on their way, and the container is stopped before the broker is back.
func TestAFreezeIsToldAsOne(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (src transport.Source, publish func(*oracle.Ledger), node freezer, never string){
		"rabbitmq": func(t *testing.T) (transport.Source, func(*oracle.Ledger), freezer, string) {
			node := brokertest.FaultNode(t)
			q := newRabbitQueue(t, node.URL, brokertest.Name(t, "freeze"), nil)
			return amqp.New(node.URL, amqp.Config{Heartbeat: time.Second}).Queue(q.name, amqp.QueueConfig{}), func(l *oracle.Ledger) { q.publish(l, 0, 20, 5) }, node, "let handlers obey"
		},
		"kafka": func(t *testing.T) (transport.Source, func(*oracle.Ledger), freezer, string) {
			node := brokertest.FaultKafka(t)
			k := newKafkaTopic(t, node.Addrs, 2)
			return k.group(kafka.GroupConfig{SessionTimeout: 4 * time.Second}), func(l *oracle.Ledger) { k.publish(l, 0, 20, 5) }, node, "wait at the broker"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, publish, node, never := open(t)
			core, logs := observer.New(zapcore.InfoLevel)
			l := oracle.New()
			c := consumeFrom(t, src, container.Config{Name: "words", Logger: zap.New(core), Reopen: quickly, DrainTimeout: 5 * time.Second,
				DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, func(_ context.Context, d *longshore.Delivery) error {
				if strings.HasSuffix(string(d.Key), "4") {
					return longshore.Retry(errors.New("busy"), time.Minute)
				}
				l.Begin(string(d.Body), string(d.Key))(d.Owned())
				return nil
			})
			publish(l)
			eventually(t, 60*time.Second, "all are handled or parked", func() bool { return l.Done()+c.Stats().Parked >= 16 })
			node.Freeze()
			defer node.Thaw()
			eventually(t, 90*time.Second, "the freeze is noticed", func() bool { return c.State() == container.StateRecovering })
			err := c.Stop(context.Background())
			text := fmt.Sprint(err)
			lines := append(wordsOf(t, logs), text)
			if strings.Contains(strings.Join(lines, " "), never) {
				t.Errorf("it says %q", never)
			}
			if n := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "consumer lost") }); n < 0 {
				t.Errorf("the loss is not logged:\n%s", strings.Join(lines, "\n"))
			}
			t.Logf("%s\nstop: %s", strings.Join(lines, "\n"), text)
		})
	}
}

// freezer is a broker that can be frozen.
type freezer interface {
	Freeze()
	Thaw()
}
