package onbrokers

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// handledBy counts what was handled of each queue or topic.
type handledBy struct {
	mu sync.Mutex
	n  map[string]int
}

func (h *handledBy) Handle(_ context.Context, d *longshore.Delivery) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n[d.Origin.Topic]++
	return nil
}

func (h *handledBy) counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.n)
}

// outletOf publishes to a source.
func outletOf(t *testing.T, src transport.Source) func() {
	t.Helper()
	out, ok := src.(transport.Outlet)
	if !ok {
		t.Fatal("it cannot be published to")
	}
	p, self, err := out.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return func() {
		t.Helper()
		if err := p.Publish(t.Context(), self, &longshore.Message{Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
}

// One group over two SQS queues, a RabbitMQ queue and a Kafka topic: each is stopped, paused
// and inspected by its name, and the others go on.
func TestGroupOnBrokers(t *testing.T) {
	t.Parallel()
	// ElasticMQ gives a message to a poll that has ended, which hides it for this time.
	short := map[string]string{"VisibilityTimeout": "2"}
	labs := []lab{sqsQueue(t, short), sqsQueue(t, short), rabbit(t), kafkaLab(t)}
	var sources []transport.Source
	var names []string
	for _, l := range labs {
		sources = append(sources, l.source)
		if d, ok := l.source.(transport.Describer); ok {
			names = append(names, d.Describe().Name)
		}
	}
	handled := &handledBy{n: map[string]int{}}
	g, err := container.NewGroup(handled, container.GroupConfig{Config: container.Config{Workers: container.Workers{Max: 2}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, Logger: zap.NewNop()}}, sources...)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var publishers []func()
	for _, src := range sources {
		publishers = append(publishers, outletOf(t, src))
	}
	want := map[string]int{}
	send := func(what string, silent string) {
		t.Helper()
		for i, publish := range publishers {
			publish()
			if want[names[i]]++; names[i] == silent {
				want[names[i]]--
			}
		}
		for end := time.Now().Add(20 * time.Second); !maps.Equal(handled.counts(), want); {
			if time.Now().After(end) {
				t.Fatalf("%s: %v handled, want %v", what, handled.counts(), want)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	send("all of them", "")
	for i, name := range names {
		if err := g.PauseSource(name); err != nil {
			t.Fatal(err)
		}
		for _, other := range names {
			if s, err := g.Stats(other); err != nil || (s.State == container.StatePaused) != (other == name) {
				t.Errorf("%s is %s while %s is paused (%v)", other, s.State, name, err)
			}
		}
		send(name+" is paused", name)
		want[name]++ // it waits
		if err := g.ResumeSource(name); err != nil {
			t.Fatal(err)
		}
		send(name+" is resumed", "")
		if i > 0 {
			continue
		}
		if err := g.StopSource(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		send(name+" is stopped", name)
		want[name]++
		if err := g.StartSource(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		send(name+" is started again", "")
	}
	if err := g.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if report := g.DrainReport(); strings.Count(report, "abandoned 0, unflushed 0") != len(names) {
		t.Errorf("report %q", report)
	}
}
