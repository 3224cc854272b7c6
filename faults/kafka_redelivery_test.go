package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/kafka"
)

// foreign are records as others send them: without our headers, with wrong ones, with
// bodies that nobody can read.
func foreign() []*kgo.Record {
	h := func(kv ...string) (hs []kgo.RecordHeader) {
		for i := 0; i < len(kv); i += 2 {
			hs = append(hs, kgo.RecordHeader{Key: kv[i], Value: []byte(kv[i+1])})
		}
		return hs
	}
	return []*kgo.Record{
		{Value: nil}, {Value: []byte{}}, {Value: []byte("<xml/>")}, {Value: []byte("{")}, {Value: []byte{0xC3, 0x28, 0}},
		{Value: []byte(`{"ID":7}`)}, {Value: []byte("x"), Headers: h("content-type", "application/unheard-of")},
		{Value: []byte("x"), Headers: h("content-encoding", "rot13")},
		{Value: []byte("x"), Headers: h("longshore-attempt", "many", "longshore-env", "{not ours", "longshore-p-priority", "high")},
		{Value: []byte("x"), Headers: h("a", "1", "a", "2", "bad", "\xc3\x28\x02", "", "no name")},
	}
}

// F-G02, F-N20: what foreign producers send gets a verdict each; key, body and headers
// arrive in the dead-letter topic byte for byte, and a tombstone as a tombstone.
func TestKafkaForeignRecordsEachGetAVerdict(t *testing.T) {
	onKafka(t, 1, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		dead, sent := k.also(".dlt"), foreign()
		for i, r := range sent {
			r.Topic, r.Key = k.name, fmt.Append(nil, i)
		}
		k.raw(append(sent, &kgo.Record{Topic: k.name, Key: []byte("good"), Value: []byte(`{"ID":"good"}`)})...)
		var good atomic.Int64
		type order struct{ ID string }
		c, err := container.New(k.group(kafka.GroupConfig{Protocol: p}), longshore.Typed(longshore.JSON{}, func(context.Context, order, *longshore.Delivery) error {
			good.Add(1)
			return nil
		}), container.Config{DeadLetter: container.DeadLetter{To: dead}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.idle()
		stopped(t, c)
		if good.Load() != 1 {
			t.Errorf("the good one was handled %d times", good.Load())
		}
		seen := map[string]bool{}
		for _, r := range k.records(dead, len(sent)) {
			i, err := strconv.Atoi(string(r.Key))
			if err != nil || seen[string(r.Key)] {
				t.Errorf("key %q, seen before: %t", r.Key, seen[string(r.Key)])
				continue
			}
			seen[string(r.Key)] = true
			if !bytes.Equal(r.Value, sent[i].Value) || (r.Value == nil) != (sent[i].Value == nil) {
				t.Errorf("%d: body %#v, want %#v", i, r.Value, sent[i].Value)
			}
			want := longshore.CodeUndecodable
			if sent[i].Value == nil {
				want = longshore.CodeTombstone
			}
			if reason := header(r, "longshore-dead-reason"); reason != string(want) {
				t.Errorf("%d: reason %q", i, reason)
			}
			sameHeaders(t, i, r, sent[i])
		}
	})
}

// sameHeaders compares what a producer set with what came, our own names apart.
func sameHeaders(t *testing.T, i int, got, want *kgo.Record) {
	t.Helper()
	foreign := func(r *kgo.Record) (all []string) {
		for _, h := range r.Headers {
			if !strings.HasPrefix(h.Key, "longshore-") {
				all = append(all, fmt.Sprintf("%s=%q", h.Key, h.Value))
			}
		}
		return all
	}
	if g, w := fmt.Sprint(foreign(got)), fmt.Sprint(foreign(want)); g != w {
		t.Errorf("%d: headers %s, want %s", i, g, w)
	}
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// F-G03: attempts first, then one dead-letter write, also where the topic for it is
// made only later.
func TestKafkaDeadLetterIsWrittenOnceAfterTheLastAttempt(t *testing.T) {
	onKafka(t, 1, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		k.raw(&kgo.Record{Topic: k.name, Key: []byte("k"), Value: []byte("bad")})
		var mu sync.Mutex
		var attempts []int
		c := consumeFrom(t, k.group(kafka.GroupConfig{Protocol: p}), container.Config{DeadLetter: container.DeadLetter{To: k.name + ".dlt"},
			Redelivery: container.Redelivery{MaxAttempts: 4, Backoff: quickly}}, func(_ context.Context, d *longshore.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			attempts = append(attempts, d.Attempt)
			return errors.New("always")
		})
		eventually(t, 60*time.Second, "a failed dead-letter write is counted", func() bool { return c.Stats().DeadLetterFailures > 0 })
		if at, _, err := k.committed(); at > 0 {
			t.Errorf("committed %d before the dead letter was written: %v", at, err)
		}
		dead := k.also(".dlt")
		k.idle()
		stopped(t, c)
		if fmt.Sprint(attempts) != "[1 2 3 4]" {
			t.Errorf("attempts %v, want 1 to 4", attempts)
		}
		k.records(dead, 1)
	})
}

// F-G04: failure headers do not grow from hop to hop, and an error text of a megabyte
// closes nothing.
func TestKafkaFailureHeadersDoNotGrow(t *testing.T) {
	onKafka(t, 1, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		dead := k.also(".dlt")
		huge := errors.New(strings.Repeat("überlang ", 1<<17))
		c := consumeFrom(t, k.group(kafka.GroupConfig{Protocol: p}), container.Config{DeadLetter: container.DeadLetter{To: dead},
			Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: quickly}}, func(context.Context, *longshore.Delivery) error { return huge })
		next := &kgo.Record{Topic: k.name, Key: []byte("k"), Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "mine", Value: []byte("kept")}}}
		first := 0
		for hop := range 5 {
			k.raw(next)
			rs := k.records(dead, hop+1)
			r, size, names := rs[hop], 0, map[string]int{}
			for _, h := range r.Headers {
				size += len(h.Key) + len(h.Value)
				names[h.Key]++
			}
			text := header(r, "longshore-dead-error")
			if text == "" || len(text) > 512 || !utf8.ValidString(text) || header(r, "mine") != "kept" {
				t.Fatalf("hop %d: error text of %d bytes, valid %t, mine %q", hop, len(text), utf8.ValidString(text), header(r, "mine"))
			}
			for name, n := range names {
				if n > 1 {
					t.Errorf("hop %d: header %s is there %d times", hop, name, n)
				}
			}
			if hop == 1 {
				first = size
			}
			if hop > 1 && size > first+8 {
				t.Errorf("hop %d: headers grew from %d to %d bytes", hop, first, size)
			}
			next = &kgo.Record{Topic: k.name, Key: r.Key, Value: r.Value, Headers: r.Headers}
		}
		if n := total(c.Stats().Reopens); n != 0 {
			t.Errorf("the consumer was opened again %d times", n)
		}
		k.idle()
		stopped(t, c)
	})
}

// F-G05: a short delay does not wait behind a long one of the same partition; a record
// that waits parks its key and nothing else.
func TestKafkaShortDelayDoesNotWaitBehindALongOne(t *testing.T) {
	onKafka(t, 1, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		var mu sync.Mutex
		first, late := map[string]time.Time{}, map[string]time.Duration{}
		c := consumeFrom(t, k.group(kafka.GroupConfig{Protocol: p}), container.Config{Workers: fixed(4), DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, DrainTimeout: time.Second},
			func(_ context.Context, d *longshore.Delivery) error {
				mu.Lock()
				defer mu.Unlock()
				body := string(d.Body)
				if body == "long" {
					return longshore.Retry(nil, 5*time.Minute)
				}
				if began, seen := first[body]; seen {
					late[body] = time.Since(began) - time.Second
					return nil
				}
				first[body] = time.Now()
				return longshore.Retry(nil, time.Second)
			})
		rs := []*kgo.Record{{Topic: k.name, Key: []byte("long"), Value: []byte("long")}}
		for i := range 50 {
			rs = append(rs, &kgo.Record{Topic: k.name, Key: fmt.Append(nil, i), Value: fmt.Append(nil, "short ", i)})
		}
		k.raw(rs...)
		eventually(t, 60*time.Second, "all short ones came again", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(late) == 50
		})
		stops(t, c)
		for body, l := range late {
			if l < 0 || l > 30*time.Second { // the other waits for 5 min
				t.Errorf("%s came again %s late", body, l)
			}
		}
		if at, _, err := k.committed(); at != 0 {
			t.Errorf("committed %d, past the one that waits: %v", at, err)
		}
	})
}
