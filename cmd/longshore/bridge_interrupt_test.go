package main

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// Ctrl-C at each step of a cut-over ends the command, which reports the state, the command that goes
// on and the one that undoes it. The next run goes on, and every message arrives once, dead letters
// included. Each step is held open by what it waits for, so that the signal comes in that step.
func TestCtrlCAtEachStepOfACutover(t *testing.T) {
	t.Parallel()
	s := moving(t, amqp.Classic)
	cutover := []string{"cutover", "--yes", "--json", "--accept", "REPLY-TO"}
	at := func(step int, hold func() (release func()), phase string) {
		t.Helper()
		next, undo := s.nexts()
		if phase == "planned" {
			undo = ""
		}
		s.interrupted(t, step, hold(), moveResult{Route: "orders", Phase: phase, Next: next, Undo: undo}, cutover...)
	}
	at(1, s.standsStill, "planned")
	at(2, s.holdsFirst(t, s.old.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})), "seeded")
	at(3, s.lacksReplicas, "old-ended")
	at(4, nothing, "flows")
	endNew := consuming(t, s.newSide())
	at(5, nothing, "new-runs")
	at(6, s.lacksReplicas, "quiet") // the dead letters are on their way
	s.bridge(t, world{}, 0, `"phase":"drained"`, cutover...)
	s.bridge(t, world{}, 0, "missing 0, extra 0, changed 0", "verify")
	endNew()
	if ids := s.ids(t, "orders", "orders-dlq"); len(ids) != 22 || len(slices.Compact(slices.Clone(ids))) != 22 {
		t.Errorf("%d records arrived: %v", len(ids), ids)
	}
}

// The same of the way back.
func TestCtrlCAtEachStepOfARollback(t *testing.T) {
	t.Parallel()
	s := moving(t, amqp.Classic)
	s.bridge(t, interruptAt("new consumers: start"), 130, "next:", "cutover", "--yes", "--accept", "REPLY-TO")
	rollback := []string{"rollback", "--yes", "--json"}
	at := func(step int, hold func() (release func()), phase string) {
		t.Helper()
		_, next := s.nexts()
		s.interrupted(t, step, hold(), moveResult{Route: "orders", Phase: phase, Next: next}, rollback...)
	}
	at(1, s.holdsFirst(t, s.newSide()), "returning")
	at(2, s.hasNothing, "new-ended")
	at(3, nothing, "flows-back")
	handled := make(chan string, 100)
	c, err := container.New(s.old.Queue("orders", amqp.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error { handled <- d.ID; return nil }),
		container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	at(4, nothing, "old-runs")
	s.bridge(t, world{}, 0, `"phase":"planned"`, rollback...)
	s.bridge(t, world{}, 0, "missing 0, extra 0, changed 0", "verify")
	ids := map[string]bool{}
	for range 20 {
		ids[<-handled] = true
	}
	if len(ids) != 20 || len(handled) > 0 {
		t.Errorf("%d orders were handled, and %d again", len(ids), 20-len(ids)+len(handled))
	}
}

// nothing holds a step that waits by itself.
func nothing() (release func()) { return func() {} }

// nexts are the commands that go on and back.
func (s *site) nexts() (cutover, rollback string) {
	return "longshore bridge cutover orders -c " + s.file, "longshore bridge rollback orders -c " + s.file
}

// holdsFirst is a consumer that holds a message.
func (s *site) holdsFirst(t *testing.T, src transport.Source) (hold func() (release func())) {
	return func() func() {
		c, err := src.Open(t.Context(), transport.OpenOptions{Window: 1})
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// interrupted presses Ctrl-C once a verb is in a step, ends what holds it there, and compares the result.
func (s *site) interrupted(t *testing.T, at int, release func(), want moveResult, verb ...string) {
	t.Helper()
	pressed, signals := false, make(chan os.Signal, 1)
	var ending sync.WaitGroup
	w := world{signals: signals, printed: func(stdout string) { // one line after the other
		var now step
		if json.Unmarshal([]byte(lastLine(stdout)), &now) == nil && now.Step == at && !now.Done && !pressed {
			pressed = true
			signals <- os.Interrupt
			ending.Go(func() {
				<-time.After(200 * time.Millisecond) // by then the verb knows of the signal
				release()
			})
		}
	}}
	got := s.bridge(t, w, 130, "", verb...)
	ending.Wait()
	var end moveResult
	if err := json.Unmarshal([]byte(lastLine(got.out)), &end); err != nil {
		t.Fatalf("%v: %s", err, got.out)
	}
	if !reflect.DeepEqual(end, want) {
		t.Fatalf("Ctrl-C at step %d of %s: %+v, want %+v", at, verb[0], end, want)
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// standsStill makes Kafka answer nothing from the next request to create topics on, until release
// is called. (The server could let that one alone sleep, but has a data race there.)
func (s *site) standsStill() (release func()) {
	open := make(chan struct{})
	s.kafka.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		<-open
		return nil, nil, false
	})
	return func() { close(open) }
}

// hasNothing makes Kafka answer without records until release is called.
func (s *site) hasNothing() (release func()) {
	var again atomic.Bool
	s.kafka.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if again.Load() {
			return nil, nil, false
		}
		s.kafka.KeepControl()
		return r.ResponseKind(), nil, true
	})
	return func() { again.Store(true) }
}

// lacksReplicas makes Kafka refuse records, which the client repeats, until release is called.
func (s *site) lacksReplicas() (release func()) {
	var again atomic.Bool
	s.kafka.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req, ok := r.(*kmsg.ProduceRequest)
		if again.Load() || !ok {
			return nil, nil, false
		}
		s.kafka.KeepControl()
		return refusal(req), nil, true
	})
	return func() { again.Store(true) }
}

func refusal(req *kmsg.ProduceRequest) kmsg.Response {
	res := kmsg.NewPtrProduceResponse()
	res.SetVersion(req.GetVersion())
	for _, t := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
			rt.Partitions = append(rt.Partitions, rp)
		}
		res.Topics = append(res.Topics, rt)
	}
	return res
}

// ids are the identities of all records of topics, in order.
func (s *site) ids(t *testing.T, topics ...string) (ids []string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addrs...), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for end := time.Now().Add(10 * time.Second); len(ids) < 22 && time.Now().Before(end); {
		for _, r := range cl.PollFetches(t.Context()).Records() {
			for _, h := range r.Headers {
				if h.Key == longshore.HeaderID {
					ids = append(ids, string(h.Value))
				}
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Credentials of the old side that are revoked in the middle of a cut-over end it with exit code 6. It
// reports the state and the next command, which goes on once they are valid again.
func TestCredentialsRevokedDuringACutover(t *testing.T) {
	t.Parallel()
	s := moving(t, amqp.Classic)
	cutover := []string{"cutover", "--yes", "--json", "--accept", "REPLY-TO"}
	w := doing(map[string]func(){})
	revoked := false
	w.printed = func(stdout string) {
		var now step
		if json.Unmarshal([]byte(lastLine(stdout)), &now) == nil && now.Step == 4 && !revoked {
			revoked = true
			s.server.SetPassword("guest", "another one")
			s.server.Cut(nil)
		}
	}
	got := s.bridge(t, w, 6, `"code":"auth"`, cutover...)
	next, undo := s.nexts()
	var end moveResult
	if err := json.Unmarshal([]byte(lastLine(got.out)), &end); err != nil || !reflect.DeepEqual(end, moveResult{Route: "orders", Phase: "flows", Next: next, Undo: undo}) {
		t.Errorf("%v: %+v", err, end)
	}
	s.bridge(t, world{}, 6, "auth", cutover...)
	s.server.SetPassword("guest", "guest")
	endNew := consuming(t, s.newSide())
	s.bridge(t, world{}, 0, `"phase":"drained"`, cutover...)
	s.bridge(t, world{}, 0, "missing 0, extra 0, changed 0", "verify")
	endNew()
	if ids := s.ids(t, "orders", "orders-dlq"); len(slices.Compact(slices.Clone(ids))) != 22 {
		t.Errorf("%d records arrived: %v", len(ids), ids)
	}
}
