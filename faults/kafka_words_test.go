package faults

import (
	"context"
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
	var lines []string
	lost, back := -1, -1
	for i, e := range logs.All() {
		line := e.Message
		for _, f := range e.Context {
			if f.Key == "code" || f.Key == "text" || f.Key == "error" || f.Key == "help" {
				line += " " + f.Key + "=" + f.String
			}
		}
		lines = append(lines, line)
		switch {
		case strings.HasPrefix(line, "consumer lost") && lost < 0:
			lost = i
		case strings.HasPrefix(line, "container subscribed"), strings.HasPrefix(line, "consumer reconnected"):
			back = i
		}
		for _, never := range []string{"code=handler", "gives it to somebody else", "wait at the broker", "let handlers obey", "look why the partition's leader"} {
			if strings.Contains(line, never) {
				t.Errorf("%q says %q", line, never)
			}
		}
	}
	if lost < 0 || back < lost || !strings.Contains(lines[max(lost, 0)], "code="+string(longshore.CodeUnreachable)) {
		t.Errorf("lost in line %d, back in line %d of\n%s", lost, back, strings.Join(lines, "\n"))
	}
	if n := slices.IndexFunc(lines[back+1:], func(s string) bool { return strings.HasPrefix(s, "consumer lost") }); n >= 0 {
		t.Errorf("lost again after it was back:\n%s", strings.Join(lines, "\n"))
	}
}
