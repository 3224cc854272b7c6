package sqstest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// bubble runs f with a server without a port, where time passes at once.
func bubble(t *testing.T, cfg sqstest.Config, f func(e *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.NoPort = true
		f(newEnv(t, cfg))
	})
}

func TestReleasedHeadOfAGroupWaitsForTheRestOfItsRun(t *testing.T) {
	bubble(t, sqstest.Config{}, releasedHeadWaitsForItsRun)
}

func TestAttributeRules(t *testing.T) { bubble(t, sqstest.Config{}, attributeRules) }

func TestReceiveAttemptRepeatsTheSameReceipts(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders.fifo", nil)
		e.send(q, "1", inGroup("g", "1"))
		e.send(q, "2", inGroup("g", "2"))
		attempt := func(in *awssqs.ReceiveMessageInput) { in.ReceiveRequestAttemptId = aws.String("a-1") }
		first, again := e.receive(q, 10, 0, attempt), e.receive(q, 10, 0, attempt)
		e.got(again, "1", "2")
		if len(first) != 2 || len(again) != 2 || *first[0].ReceiptHandle != *again[0].ReceiptHandle {
			e.Errorf("%v, then %v", first, again)
		}
		e.ok(e.remove(q, first[0]))
		e.got(e.receive(q, 10, 0, attempt)) // one of them is gone: no longer the same
	})
}

func TestMessageBeyondItsRetentionIsGone(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", map[string]string{"MessageRetentionPeriod": "60"})
		e.send(q, "old")
		e.wait(30 * time.Second)
		e.send(q, "young")
		e.wait(31 * time.Second)
		e.got(e.receive(q, 10, 0), "young")
		e.wait(time.Minute)
		e.counts(q, "0", "0", "0")
	})
}

func TestMaximumInFlight(t *testing.T) {
	bubble(t, sqstest.Config{MaxInFlight: 20}, func(e *env) {
		q := e.queue("orders", nil)
		for range 21 {
			e.send(q, "x")
		}
		e.receive(q, 10, 0)
		e.receive(q, 9, 0)
		if n := len(e.receive(q, 10, 0)); n != 1 {
			e.Errorf("%d beyond the limit", n-1)
		}
		_, err := e.c.ReceiveMessage(e.ctx(), &awssqs.ReceiveMessageInput{QueueUrl: &q})
		isA[*types.OverLimit](e, err)
		e.got(e.receive(q, 1, 1)) // a long poll waits and gets nothing
	})
}

func TestPurgeAndCreateTooSoon(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		purge := func() error {
			_, err := e.c.PurgeQueue(e.ctx(), &awssqs.PurgeQueueInput{QueueUrl: &q})
			return err
		}
		create := func() error {
			_, err := e.c.CreateQueue(e.ctx(), &awssqs.CreateQueueInput{QueueName: aws.String("orders")})
			return err
		}
		e.ok(purge())
		isA[*types.PurgeQueueInProgress](e, purge())
		e.wait(time.Minute)
		e.ok(purge())
		_, err := e.c.DeleteQueue(e.ctx(), &awssqs.DeleteQueueInput{QueueUrl: &q})
		e.ok(err)
		isA[*types.QueueDeletedRecently](e, create())
		e.wait(time.Minute)
		e.ok(create())
	})
}

func TestListQueuesByPages(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		for i := range 5 {
			e.queue(fmt.Sprint("q", i), nil)
		}
		var got []string
		pages := awssqs.NewListQueuesPaginator(e.c, &awssqs.ListQueuesInput{MaxResults: aws.Int32(2)})
		n := 0
		for ; pages.HasMorePages(); n++ {
			p, err := pages.NextPage(e.ctx())
			e.ok(err)
			for _, u := range p.QueueUrls {
				got = append(got, u[strings.LastIndex(u, "/")+1:])
			}
		}
		if strings.Join(got, " ") != "q0 q1 q2 q3 q4" || n != 3 {
			e.Errorf("%v in %d pages", got, n)
		}
	})
}

func TestExpiredReceiptOnFIFOQueueIsRefused(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders.fifo", nil)
		e.send(q, "1", inGroup("g", "1"))
		m := e.one(q, 0, hiddenFor(1))
		e.wait(2 * time.Second)
		e.code(e.remove(q, m), "InvalidParameterValue")
		second := e.one(q, 0)
		e.code(e.remove(q, m), "InvalidParameterValue")
		e.ok(e.remove(q, second))
		e.ok(e.remove(q, second))
	})
}

func TestTwelveHoursFromTheReceiveAreTheLimit(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		e.send(q, "x")
		m := e.one(q, 0, hiddenFor(7200))
		e.wait(time.Hour)
		e.code(e.hide(q, m, 43200), "InvalidParameterValue")
		e.ok(e.hide(q, m, 43200-3600))
	})
}

func TestGroupOnStandardQueueIsKeptAndIsNoOrder(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		e.send(q, "1", inGroup("g", ""))
		e.send(q, "2", inGroup("g", ""))
		ms := e.receive(q, 1, 0)
		e.got(e.receive(q, 10, 0), "2")
		if ms[0].Attributes["MessageGroupId"] != "g" {
			e.Errorf("attributes %v", ms[0].Attributes)
		}
		_, err := e.trySend(q, "x", inGroup("g", "d"))
		e.code(err, "InvalidParameterValue")
	})
}

func TestVirtualClockMovesOnlyWhenTold(t *testing.T) {
	e := newEnv(t, sqstest.Config{VirtualClock: true})
	q := e.queue("orders", nil)
	e.send(q, "x", delayed(600))
	e.none(q)
	got := make(chan int)
	go func() { got <- len(e.receive(q, 1, 20)) }()
	until(t, func() bool { return e.s.Count("ReceiveMessage") == 2 })
	e.s.Advance(599 * time.Second)
	if n := <-got; n != 0 {
		t.Errorf("after 599 s a poll of 20 s returned %d messages", n)
	}
	e.s.Advance(time.Second)
	e.one(q, 0)
}

// until waits for a condition.
func until(t testing.TB, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("not seen within 10 s")
		}
	}
}

func TestCloseEndsOpenPolls(t *testing.T) {
	for _, noPort := range []bool{false, true} {
		s, err := sqstest.Start(sqstest.Config{NoPort: noPort})
		if err != nil {
			t.Fatal(err)
		}
		e := &env{TB: t, s: s, c: clientOf(t, s, noPort)}
		q := e.queue("orders", nil)
		end := make(chan error)
		go func() {
			_, err := e.c.ReceiveMessage(e.ctx(), &awssqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
			end <- err
		}()
		until(t, func() bool { return s.Count("ReceiveMessage") == 1 })
		e.took(0, time.Second, func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := <-end; err == nil {
				t.Error("the poll returned without an error")
			}
		})
		if err := s.Close(); err != nil {
			t.Errorf("the second close: %v", err)
		}
	}
}

func TestTwoServersShareNothing(t *testing.T) {
	a, b := newEnv(t, sqstest.Config{}), newEnv(t, sqstest.Config{})
	a.queue("orders", nil)
	_, err := b.c.GetQueueUrl(b.ctx(), &awssqs.GetQueueUrlInput{QueueName: aws.String("orders")})
	isA[*types.QueueDoesNotExist](b, err)
}

func TestConfigurationErrorsComeTogether(t *testing.T) {
	_, err := sqstest.Start(sqstest.Config{Addr: "127.0.0.1:0", NoPort: true, AccountID: "12"})
	if err == nil || !strings.Contains(err.Error(), "NoPort") || !strings.Contains(err.Error(), "12 digits") {
		t.Errorf("error %v", err)
	}
}

func TestOtherKeysAreRefused(t *testing.T) {
	e := newEnv(t, sqstest.Config{AccessKeys: []string{"other"}})
	_, err := e.c.ListQueues(e.ctx(), &awssqs.ListQueuesInput{})
	e.code(err, "InvalidClientTokenId")
	e.s.AllowKeys("test")
	_, err = e.c.ListQueues(e.ctx(), &awssqs.ListQueuesInput{})
	e.ok(err)
}

func TestStartTakesFiveMilliseconds(t *testing.T) {
	best := time.Hour
	for range 10 {
		start := time.Now()
		s, err := sqstest.Start(sqstest.Config{})
		took := time.Since(start)
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, took)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if best > 5*time.Millisecond {
		t.Errorf("start takes %s", best)
	}
}

func TestUnknownActionAndGarbage(t *testing.T) {
	e := newEnv(t, sqstest.Config{})
	_, err := e.c.AddPermission(e.ctx(), &awssqs.AddPermissionInput{QueueUrl: aws.String("x"), Label: aws.String("x"), AWSAccountIds: []string{"1"}, Actions: []string{"*"}})
	e.code(err, "InvalidAction")
}

// canceled is a call that its caller gave up.
func canceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
