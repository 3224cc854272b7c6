package sqstest_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func pollChecks() []check {
	return []check{
		{"Short poll on empty queue returns at once", func(e *env) {
			q := e.queue("orders", nil)
			e.took(0, 500*ms, func() { e.none(q) })
		}},
		{"Long poll: WaitTimeSeconds=5 returns early on arrival (sent at 1s)", func(e *env) {
			q := e.queue("orders", nil)
			defer e.later(time.Second, func() { e.send(q, "x") })()
			e.took(900*ms, 2*time.Second, func() { e.one(q, 5) })
		}},
		{"Long poll: returns empty after 5s", func(e *env) {
			q := e.queue("orders", nil)
			e.took(4900*ms, 6*time.Second, func() { e.got(e.receive(q, 10, 5)) })
		}},
		{"Long poll: 3 waiters, 3 messages, all served", func(e *env) {
			q := e.queue("orders", nil)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if n := len(e.receive(q, 1, 5)); n != 1 {
						e.Errorf("a poll returned %d messages", n)
					}
				})
			}
			e.wait(300 * ms)
			for range 3 {
				e.send(q, "x")
			}
			wg.Wait()
		}},
		{"Long poll: cancelled client does not eat a later message", func(e *env) {
			q := e.queue("orders", nil)
			ctx, cancel := context.WithTimeout(e.ctx(), 300*ms)
			defer cancel()
			if _, err := e.c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 10}); err == nil {
				e.Error("the cancelled poll returned no error")
			}
			e.wait(200 * ms)
			e.send(q, "x")
			e.one(q, 0)
		}},
		{"Long poll wakes when a delayed message becomes due (2s)", func(e *env) {
			q := e.queue("orders", nil)
			e.took(1900*ms, 3*time.Second, func() {
				e.send(q, "x", delayed(2))
				e.one(q, 10)
			})
		}},
		{"Long poll wakes when a visibility timeout expires (2s)", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			e.took(1900*ms, 3*time.Second, func() {
				e.one(q, 0, hiddenFor(2))
				e.one(q, 10)
			})
		}},
		{"Long poll wakes on ChangeMessageVisibility(0)", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0)
			defer e.later(time.Second, func() { e.ok(e.hide(q, m, 0)) })()
			e.took(900*ms, 2*time.Second, func() { e.one(q, 10) })
		}},
		{"FIFO: long poll wakes when the blocking message is deleted", func(e *env) {
			q := e.queue("orders.fifo", nil)
			e.send(q, "1", inGroup("g", "1"))
			e.send(q, "2", inGroup("g", "2"))
			m := e.one(q, 0)
			defer e.later(time.Second, func() { e.ok(e.remove(q, m)) })()
			e.took(900*ms, 2*time.Second, func() { e.got(e.receive(q, 10, 10), "2") })
		}},
		{"Queue ReceiveMessageWaitTimeSeconds=2 honoured", func(e *env) {
			q := e.queue("orders", map[string]string{"ReceiveMessageWaitTimeSeconds": "2"})
			e.took(1900*ms, 3*time.Second, func() { e.got(e.receive(q, 10, 0)) })
		}},
		{"MaxNumberOfMessages: default 1, up to 10, 11 = error", func(e *env) {
			q := e.queue("orders", nil)
			for range 12 {
				e.send(q, "x")
			}
			if n := len(e.receive(q, 0, 0)); n != 1 {
				e.Errorf("by default %d", n)
			}
			if n := len(e.receive(q, 10, 0)); n != 10 {
				e.Errorf("%d of 10", n)
			}
			_, err := e.c.ReceiveMessage(e.ctx(), &awssqs.ReceiveMessageInput{QueueUrl: &q, MaxNumberOfMessages: 11})
			e.code(err, "InvalidParameterValue")
		}},
		{"8 competing consumers, 400 messages: no loss, no double delivery", competingConsumers},
	}
}

func competingConsumers(e *env) {
	q := e.queue("orders", nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				var batch []types.SendMessageBatchRequestEntry
				for _, id := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
					batch = append(batch, entry(id, "x"))
				}
				_, err := e.sendBatch(q, batch...)
				if err != nil {
					e.Error(err)
				}
			}
		})
	}
	var mu sync.Mutex
	seen := map[string]int{}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(seen)
	}
	for range 8 {
		wg.Go(func() {
			for count() < 400 {
				for _, m := range e.receive(q, 10, 1) {
					mu.Lock()
					seen[*m.MessageId]++
					mu.Unlock()
					if err := e.remove(q, m); err != nil {
						e.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for id, n := range seen {
		if n != 1 {
			e.Errorf("%s was delivered %d times", id, n)
		}
	}
	e.counts(q, "0", "0", "0")
}
