package container_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// stands is how many events the lines of a phrase stand for.
func stands(logs *observer.ObservedLogs, phrase string) (events int64, lines int) {
	for _, l := range logs.FilterMessage(phrase).All() {
		n, ok := l.ContextMap()["repeated"].(int64)
		if !ok {
			n = 1
		}
		events += n
		lines++
	}
	return events, lines
}

// What repeats is logged at once and then once a minute with a count.
func TestRepeatedLogLinesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		b := memory.New(memory.Config{})
		var n atomic.Int64
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { n.Add(1); return errBad }),
			container.Config{Logger: zap.New(core), Redelivery: container.Redelivery{Backoff: steady(time.Second), MaxAttempts: 1000}})
		publish(t, b, "q", "m")
		wait(3*time.Minute + 30*time.Second)
		stop(t, c)
		events, lines := stands(logs, "delivery failed")
		if events != n.Load() || lines != 5 || events < 200 { // the first, three minutes, the stop
			t.Fatalf("%d lines for %d of %d failures", lines, events, n.Load())
		}
		f := logs.FilterMessage("delivery failed").All()[1].ContextMap()
		if f["code"] != "handler" || f["container"] != "q" || f["message_id"] == "" || f["transport"] != "memory" {
			t.Errorf("%v", f)
		}
	})
}

// A process that ends, and one in which nothing more fails, say what became of
// every message that was given up.
func TestEveryMessageGivenUpIsInTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		verdict func(error) error
		phrase  string
		idle    time.Duration
	}{
		"dead letters, stopped":        {longshore.Reject, "delivery dead-lettered", 0},
		"dead letters, a minute later": {longshore.Reject, "delivery dead-lettered", 61 * time.Second},
		"discards, stopped":            {longshore.Discard, "delivery discarded", 0},
		"discards, a minute later":     {longshore.Discard, "delivery discarded", 61 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zapcore.InfoLevel)
				b := memory.New(memory.Config{})
				box := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return c.verdict(errBad) }),
					container.Config{Logger: zap.New(core), DeadLetter: container.DeadLetter{To: "q.dlq"}})
				publish(t, b, "q", numbered(30)...)
				wait(time.Second)
				if _, lines := stands(logs, c.phrase); lines != 1 {
					t.Errorf("%d lines at first, want 1", lines)
				}
				if c.idle > 0 {
					wait(c.idle)
				} else {
					stop(t, box)
				}
				if events, lines := stands(logs, c.phrase); events != 30 || lines != 2 {
					t.Errorf("%d lines stand for %d of 30", lines, events)
				}
				ids, _ := logs.FilterMessage(c.phrase).All()[1].ContextMap()["message_ids"].([]any)
				if len(ids) != 10 {
					t.Errorf("ids: %v", ids)
				}
				stop(t, box)
				if all := logs.All(); all[len(all)-2].Message != "container drained" || all[len(all)-1].Message != "container stopped" {
					t.Errorf("the last lines are %q and %q", all[len(all)-2].Message, all[len(all)-1].Message)
				}
			})
		})
	}
}

// gateWriter blocks its first write.
type gateWriter struct {
	once sync.Once
	open chan struct{}
}

func (g *gateWriter) Write(p []byte) (int, error) {
	g.once.Do(func() { <-g.open })
	return len(p), nil
}

// A log that is slower than the failures misses lines and no counts.
func TestSlowLogMissesNoCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &gateWriter{open: make(chan struct{})}
		core, logs := observer.New(zapcore.WarnLevel)
		slow := zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(io.Writer(w)), zapcore.InfoLevel)
		b := memory.New(memory.Config{})
		box := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return longshore.Discard(errBad) }),
			container.Config{Logger: zap.New(zapcore.NewTee(slow, core))})
		const n = 6000 // more than events that wait
		publish(t, b, "q", numbered(n)...)
		wait(time.Second)
		close(w.open)
		stop(t, box)
		if events, _ := stands(logs, "delivery discarded"); events != n {
			t.Errorf("the lines stand for %d of %d", events, n)
		}
	})
}

// Who gives a logger reads the life of the container in it.
func TestLogTellsTheLifeOfAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		b := memory.New(memory.Config{})
		box := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return nil }),
			container.Config{Logger: zap.New(core), DeadLetter: container.DeadLetter{To: "q.dlq"}, Reopen: steady(3 * time.Second)})
		synctest.Wait()
		b.Drop("q")
		wait(5 * time.Second)
		box.Pause()
		box.Resume()
		synctest.Wait()
		stop(t, box)
		var got []string
		for _, l := range logs.All() {
			line := l.Level.String() + " " + l.Message
			if took, ok := l.ContextMap()["took"]; ok {
				line += fmt.Sprint(" ", took)
			}
			got = append(got, line)
		}
		want := []string{"info container starting", "info container subscribed 0s", "info container recovering", "warn consumer lost",
			"warn consumer reconnected 3s", "info container paused", "info container running", "info container draining",
			"info container drained 0s", "info container stopped"}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// What waits in the broker's delay queue is in no other column of the report.
func TestReportNamesWhatWaitsAtTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		box := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if string(d.Body) == "m0" {
				return longshore.Retry(errBad, time.Minute) // over when the container stops
			}
			return longshore.Retry(errBad, time.Hour)
		}), container.Config{Order: container.Unordered, Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Max: time.Hour}},
			DeadLetter: container.DeadLetter{To: "dead"}})
		publish(t, b, "q", numbered(5)...)
		wait(5 * time.Minute)
		rep := stop(t, box)
		if rep.Delayed != 4 || !strings.HasSuffix(rep.String(), "completed while draining 0, released 0, abandoned 0, unflushed 0; 4 more wait at the broker for their next attempt") {
			t.Errorf("%+v\n%v", rep, rep)
		}
	})
}
