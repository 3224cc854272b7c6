package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-D02: extensions have the queue's length, or the configured one, come at half of
// the lease at the latest, and ten at a time.
func TestExtensionsFollowTheQueue(t *testing.T) {
	for _, tc := range []struct{ queue, config, want time.Duration }{
		{5 * time.Minute, 0, 5 * time.Minute},
		{5 * time.Minute, time.Minute, time.Minute},
		{30 * time.Second, 0, 30 * time.Second},
		{30 * time.Second, 2 * time.Hour, 2 * time.Hour},
	} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": fmt.Sprint(tc.queue.Seconds())})
			broker := sqs.New(s.Config())
			publish(t, broker, "orders", "", numbered(100)...)
			c := open(t, broker.Queue("orders", sqs.QueueConfig{VisibilityTimeout: tc.config}), nil)
			ds := take(t, c, 100)
			wait(3 * tc.want)
			leases := map[string]time.Time{} // by receipt: until when
			last := map[string]time.Duration{}
			for _, call := range s.Calls("ReceiveMessage", "ChangeMessageVisibilityBatch") {
				for _, e := range call.Entries {
					length := time.Duration(e.Visibility) * time.Second
					if call.Action == "ReceiveMessage" {
						length = time.Duration(call.Visibility) * time.Second
					} else {
						if length != tc.want {
							t.Fatalf("extended to %s, want %s", length, tc.want)
						}
						if left := leases[e.Receipt].Sub(call.At); left < last[e.Receipt]/2 {
							t.Fatalf("extended when %s of %s were left", left, last[e.Receipt])
						}
					}
					leases[e.Receipt], last[e.Receipt] = call.At.Add(length), length
				}
			}
			// Three leases take five extensions or six of each message, ten at a time.
			if n := s.Count("ChangeMessageVisibilityBatch"); n < 50 || n > 90 {
				t.Errorf("%d calls for 100 messages over three leases", n)
			}
			for _, d := range ds {
				must(t, d.Ack(t.Context()))
			}
			must(t, c.Close(t.Context()))
			if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
				t.Errorf("left %+v", st)
			}
		})
	}
}

// F-D02: 5 000 in flight, 50 ms for each call, a queue of 30 s.
func TestThousandsInFlightLoseNoLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
		broker := sqs.New(s.Config())
		const n = 5000
		publish(t, broker, "orders", "", numbered(n)...)
		s.Inject(sqstest.Fault{Latency: 50 * time.Millisecond})
		var w watcher
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), &w)
		ds := take(t, c, n)
		lapsed := 0
		for range 120 {
			wait(time.Second)
			lapsed += state(t, s, "orders").Visible
		}
		if lost, _, _ := w.counts(); lost > 0 || lapsed > 0 {
			t.Errorf("%d lost, %d visible", lost, lapsed)
		}
		for _, d := range ds {
			must(t, d.Ack(t.Context()))
		}
		must(t, c.Flush(t.Context()))
		must(t, c.Close(t.Context()))
		if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

// F-D02, F-B03: a lease that cannot be kept cancels its handler within a second of
// its end; its neighbours go on.
func TestLeaseThatCannotBeKeptCancelsItsHandler(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", numbered(10)...)
		var w watcher
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), &w)
		ds := take(t, c, 10)
		bad := ""
		for _, call := range s.Calls("ReceiveMessage") {
			for _, e := range call.Entries {
				if e.Body == "m00003" {
					bad = e.Receipt
				}
			}
		}
		end := time.Now().Add(20 * time.Second) // the first lease of a quiet queue
		s.Inject(sqstest.Fault{Action: "ChangeMessageVisibilityBatch", Entry: func(e sqstest.Entry) string {
			if e.Receipt == bad {
				return "InternalFailure"
			}
			return ""
		}})
		var victim *longshore.Delivery
		for _, d := range ds {
			if string(d.Body) == "m00003" {
				victim = d
			}
		}
		<-victim.Context().Done()
		if late := time.Since(end); late > time.Second || late < -time.Second {
			t.Errorf("cancelled %s after the end of the lease", late)
		}
		cause := context.Cause(victim.Context())
		if !errors.Is(cause, longshore.ErrLost) || !errors.Is(cause, longshore.CodeLeaseLost) || !strings.Contains(cause.Error(), `sqs queue "orders"`) {
			t.Errorf("cause %v", cause)
		}
		if err := victim.Ack(t.Context()); !errors.Is(err, longshore.ErrLost) {
			t.Errorf("a late ack returned %v", err)
		}
		wait(2 * time.Minute)
		for _, d := range ds {
			if d != victim && !d.Owned() {
				t.Errorf("%s was lost too", d.Body)
			}
		}
		if lost, _, _ := w.counts(); lost != 1 {
			t.Errorf("%d reported lost, want 1", lost)
		}
		if st := state(t, s, "orders"); st.Visible != 1 || st.Hidden != 9 {
			t.Errorf("%+v, want one visible", st)
		}
		must(t, c.Close(t.Context()))
	})
}

// F-D02, F-D07: twelve hours are the end, and are used.
func TestLeaseEndsAfterTwelveHours(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "3600"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "a")
		var w watcher
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), &w)
		start := time.Now()
		d := take(t, c, 1)[0]
		<-d.Context().Done()
		if held := time.Since(start); held < 12*time.Hour-time.Minute || held > 12*time.Hour {
			t.Errorf("held for %s", held)
		}
		for _, call := range s.Calls("ChangeMessageVisibilityBatch") {
			if e := call.Entries[0]; e.Code != "" {
				t.Errorf("an extension to %d s was refused: %s", e.Visibility, e.Code)
			}
		}
		must(t, c.Close(t.Context()))
	})
}

// F-D03: handlers end exactly when their lease is to be extended.
func TestKeeperAndSettlementDoNotRace(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
		broker := sqs.New(s.Config())
		const n = 10_000
		publish(t, broker, "orders", "", numbered(n)...)
		s.Inject(sqstest.Fault{Action: "ChangeMessageVisibilityBatch", Latency: 20 * time.Millisecond})
		var w watcher
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), &w)
		ds := take(t, c, n)
		wait(11900 * time.Millisecond) // the keeper's look at a lease of 30 s is due at 12 s, of 20 s at 8 s
		step := 200 * time.Millisecond / n
		returned := map[string]time.Time{}
		for i, d := range ds {
			if i%10 == 0 {
				must(t, d.Nack(t.Context(), 2*time.Second))
				returned[string(d.Body)] = time.Now()
			} else {
				must(t, d.Ack(t.Context()))
			}
			wait(step)
		}
		again := take(t, c, len(returned))
		for _, d := range again {
			if after := d.Origin.ReceivedAt.Sub(returned[string(d.Body)]); after < time.Second || after > 3100*time.Millisecond {
				t.Errorf("%s came %s after it was returned for 2 s", d.Body, after)
			}
			must(t, d.Ack(t.Context()))
		}
		must(t, c.Flush(t.Context()))
		if lost, failed, downs := w.counts(); lost+failed+downs+len(w.seen()) != 0 {
			t.Errorf("%d lost, %d failed, %d downs, events %v", lost, failed, downs, w.seen())
		}
		noExtensionBehindTheEnd(t, s)
		must(t, c.Close(t.Context()))
		if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

// noExtensionBehindTheEnd reads the log: behind a delete, or a return, no call
// names the receipt again.
func noExtensionBehindTheEnd(t *testing.T, s *sqstest.Server) {
	t.Helper()
	ended := map[string]string{}
	extensions := 0
	for _, call := range s.Calls("DeleteMessageBatch", "ChangeMessageVisibilityBatch") {
		for _, e := range call.Entries {
			if by, ok := ended[e.Receipt]; ok {
				t.Errorf("%s of %s behind %s", call.Action, e.MessageID, by)
			}
			switch {
			case e.Code != "":
				t.Errorf("%s: %s", call.Action, e.Code)
			case call.Action == "DeleteMessageBatch" || e.Visibility < 10:
				ended[e.Receipt] = call.Action
			default:
				extensions++
			}
		}
	}
	if extensions == 0 {
		t.Error("no extension at all: the alignment is wrong")
	}
}

// F-D05: one message with two receipts within one linger window, and in one receive: it
// is handed out once, and both receipts are deleted.
func TestSameMessageTwiceInOneBatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", numbered(9)...)
		s.Inject(sqstest.Fault{Action: "ReceiveMessage", SecondReceipt: true})
		var w watcher
		c := open(t, broker.Queue("orders", sqs.QueueConfig{SettleLinger: time.Second}), &w)
		ds := take(t, c, 9)
		short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if more, err := c.Receive(short, 9); err == nil {
			t.Errorf("%d copies were handed out", len(more))
		}
		for _, d := range ds {
			must(t, d.Ack(t.Context()))
		}
		must(t, c.Flush(t.Context()))
		both := false
		for _, call := range s.Calls("DeleteMessageBatch") {
			ids, messages := map[string]bool{}, map[string]int{}
			for _, e := range call.Entries {
				ids[e.ID] = true
				messages[e.MessageID]++
				both = both || messages[e.MessageID] == 2
			}
			if len(ids) != len(call.Entries) || call.Code != "" {
				t.Errorf("entry ids %v of %d entries, %s", ids, len(call.Entries), call.Code)
			}
		}
		if _, failed, _ := w.counts(); failed != 0 || !both {
			t.Errorf("%d failed; the same message twice in one batch: %t", failed, both)
		}
		if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v: both receipts must be deleted", st)
		}
		must(t, c.Close(t.Context()))
	})
}

// F-D04: done, not yet known to the broker, and it comes again: it is deleted by
// the newest receipt and no handler sees it.
func TestDeleteThatFailsIsRepeatedByTheNewestReceipt(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "a")
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
		d := take(t, c, 1)[0]
		remove := s.Inject(sqstest.Fault{Action: "DeleteMessageBatch", Code: "ServiceUnavailable"})
		must(t, d.Ack(t.Context()))
		wait(100 * time.Millisecond)
		s.Expire("orders")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if ds, err := c.Receive(ctx, 1); err == nil {
			t.Errorf("%q was handed out again", ds[0].Body)
		}
		remove()
		must(t, c.Flush(t.Context()))
		if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
		calls := s.Calls("DeleteMessageBatch")
		receives := s.Calls("ReceiveMessage")
		newest := ""
		for _, r := range receives {
			for _, e := range r.Entries {
				newest = e.Receipt
			}
		}
		last := calls[len(calls)-1]
		if !slices.ContainsFunc(last.Entries, func(e sqstest.Entry) bool { return e.Receipt == newest }) {
			t.Errorf("the last delete names %+v, the newest receipt is %s", last.Entries, newest)
		}
		must(t, c.Close(t.Context()))
	})
}

// The answer to a delete is lost. Servers that do not take a second delete for a
// success answer the resent one with an error: nobody is told of a failure, as long
// as nobody else can have had the message. What was never sent without an answer, or
// may have been received by others meanwhile, is told.
func TestAnswerToADeleteIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		fault sqstest.Fault // of the first call
		away  time.Duration // of the server, after it
		tell  string        // "" = nothing is told
	}{
		"lost":                  {sqstest.Fault{Lose: true}, 0, ""},
		"lost, and long away":   {sqstest.Fault{Lose: true}, time.Minute, "whether it was deleted is not known"},
		"refused, not answered": {sqstest.Fault{Code: "RequestThrottled"}, 0, "the receipt has expired"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *sqstest.Server) {
				s.CreateQueue(t, "orders", nil)
				broker := sqs.New(s.Config())
				publish(t, broker, "orders", "", "a", "b")
				var w watcher
				c := open(t, broker.Queue("orders", sqs.QueueConfig{}), &w)
				ds := take(t, c, 2)
				tc.fault.Action, tc.fault.Times = "DeleteMessageBatch", 1
				s.Inject(tc.fault)
				must(t, ds[0].Ack(t.Context()))
				wait(60 * time.Millisecond) // the first call has gone
				s.Inject(sqstest.Fault{Action: "DeleteMessageBatch", Entry: func(sqstest.Entry) string { return "ReceiptHandleIsInvalid" }})
				if tc.away > 0 {
					remove := s.Inject(sqstest.Fault{Action: "DeleteMessageBatch", Latency: 9 * time.Second, Cut: true})
					wait(tc.away)
					remove()
				}
				err := c.Flush(t.Context())
				_, failed, _ := w.counts()
				if tc.tell == "" && (err != nil || failed != 0) {
					t.Errorf("Flush: %v, %d failures told: %v", err, failed, w.failed)
				}
				if tc.tell != "" && (err == nil || failed != 1 || !strings.Contains(w.failed[0].Error(), tc.tell)) {
					t.Errorf("Flush: %v, %d failures told: %v", err, failed, w.failed)
				}
				must(t, c.Close(t.Context()))
			})
		})
	}
}

// F-D04: entry 3 fails at the server once, entry 7 is refused; the others go once.
func TestPartOfABatchFails(t *testing.T) {
	for _, verb := range []string{"delete", "return"} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "orders", nil)
			broker := sqs.New(s.Config())
			publish(t, broker, "orders", "", numbered(10)...)
			var w watcher
			c := open(t, broker.Queue("orders", sqs.QueueConfig{}), &w)
			ds := take(t, c, 10)
			ids := map[string]string{}
			for _, m := range s.Messages("orders") {
				ids[m.MessageID] = m.Body
			}
			action := map[string]string{"delete": "DeleteMessageBatch", "return": "ChangeMessageVisibilityBatch"}[verb]
			var once sync.Once
			s.Inject(sqstest.Fault{Action: action, Entry: func(e sqstest.Entry) (code string) {
				switch ids[e.MessageID] {
				case "m00003":
					once.Do(func() { code = "InternalFailure" })
				case "m00007":
					if e.Visibility == 0 && verb == "return" || verb == "delete" {
						code = "AccessDenied"
					}
				}
				return code
			}})
			for _, d := range ds {
				if verb == "delete" {
					must(t, d.Ack(t.Context()))
				} else {
					must(t, d.Nack(t.Context(), 0))
				}
			}
			if err := c.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "1 not carried out") {
				t.Errorf("%s: Flush returned %v", verb, err)
			}
			sent := map[string]int{}
			for _, call := range s.Calls(action) {
				for _, e := range call.Entries {
					sent[ids[e.MessageID]]++
				}
			}
			for _, body := range numbered(10) {
				want := 1
				if body == "m00003" {
					want = 2
				}
				if sent[body] != want {
					t.Errorf("%s: %s was sent %d times, want %d", verb, body, sent[body], want)
				}
			}
			if _, failed, _ := w.counts(); failed != 1 || !errors.Is(w.failed[0], longshore.CodeSettle) {
				t.Errorf("%s: reported %v, want one", verb, w.failed)
			}
			must(t, c.Close(t.Context()))
		})
	}
}

// F-D07: a retry of 90 s on a queue of 30 s, three workers: executions = attempts,
// and what waits holds no worker.
func TestRetryDelayLongerThanTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "bad-1", "bad-2", "bad-3", "bad-4")
		var seen journal
		var times sync.Map
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			n := seen.add(string(d.Body))
			if d.Attempt != n {
				t.Errorf("%s: attempt %d at execution %d", d.Body, d.Attempt, n)
			}
			if at, ok := times.Swap(string(d.Body), time.Now()); ok {
				if gap := time.Since(at.(time.Time)); gap < 90*time.Second || gap > 93*time.Second { //nolint:errcheck // it is one
					t.Errorf("%s came again after %s", d.Body, gap)
				}
			}
			if strings.HasPrefix(string(d.Body), "bad") {
				return longshore.Retry(errBad, 90*time.Second)
			}
			return nil
		}, container.Config{Workers: container.Workers{Min: 3, Max: 3}, Redelivery: container.Redelivery{MaxAttempts: 4}, DeadLetter: container.DeadLetter{To: "dead"}})
		wait(10 * time.Second)
		publish(t, broker, "orders", "", "good")
		until(t, 2*time.Second, "the good one while the others wait", func() bool { return seen.len() == 5 })
		wait(5 * time.Minute)
		stop()
		if n := seen.len(); n != 4*4+1 {
			t.Errorf("%d executions, want 17: %v", n, seen.all())
		}
		if st := state(t, s, "dead"); st.Visible != 4 {
			t.Errorf("dead-lettered %d, want 4", st.Visible)
		}
		if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

// F-D07: SQS hides a message for 12 h since its receive. A delay of up to 12 h is
// kept all the same, in two steps that nobody sees; longer ones are refused.
func TestDelayIsKeptAlsoAfterAHandlerOfHours(t *testing.T) {
	for _, queue := range []string{"orders", "orders.fifo"} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, queue, nil)
			broker := sqs.New(s.Config())
			publish(t, broker, queue, "g", "a")
			src := broker.Queue(queue, sqs.QueueConfig{})
			c := open(t, src, nil)
			d := take(t, c, 1)[0]
			wait(5 * time.Hour)
			limit := src.Capabilities().MaxDelay
			if err := d.Nack(t.Context(), limit+time.Second); !errors.Is(err, longshore.CodeUnsupported) || !d.Owned() {
				t.Errorf("%s: a delay above %s: %v, owned %t", queue, limit, err, d.Owned())
			}
			must(t, d.Nack(t.Context(), limit))
			must(t, c.Flush(t.Context()))
			publish(t, broker, queue, "g", "b")
			start := time.Now()
			bodies := ""
			for len(bodies) < 2 {
				ds, err := c.Receive(t.Context(), 10)
				must(t, err)
				for _, d := range ds {
					bodies += string(d.Body)
					if waited := time.Since(start); string(d.Body) == "a" && (waited < limit-2*time.Second || waited > limit+2*time.Second || d.Attempt != 2) {
						t.Errorf("%s: came after %s, attempt %d", queue, waited, d.Attempt)
					}
					must(t, d.Ack(t.Context()))
				}
			}
			if want := map[string]string{"orders": "ba", "orders.fifo": "ab"}[queue]; bodies != want {
				t.Errorf("%s: came as %s, want %s", queue, bodies, want)
			}
			must(t, c.Close(t.Context()))
			if st := state(t, s, queue); st != (sqstest.QueueState{}) {
				t.Errorf("%s: left %+v", queue, st)
			}
		})
	}
}

func TestExtendByHand(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "a")
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
		d := take(t, c, 1)[0]
		must(t, d.Extend(t.Context(), time.Hour))
		if left := s.Messages("orders")[0].Due.Sub(s.Now()); left != time.Hour {
			t.Errorf("hidden for %s", left)
		}
		if err := d.Extend(t.Context(), 13*time.Hour); !errors.Is(err, longshore.CodeUnsupported) || !d.Owned() {
			t.Errorf("13 h: %v", err)
		}
		s.Expire("orders")
		if err := d.Extend(t.Context(), time.Hour); !errors.Is(err, longshore.ErrLost) || d.Owned() {
			t.Errorf("after the broker took it back: %v, owned %t", err, d.Owned())
		}
		must(t, c.Close(t.Context()))
	})
}

// A return that cannot be sent while the lease lasts is not sent after it: by its old
// receipt it would end the lease of who has the message by then. If that is this
// process, what is left of the delay is kept. F-D04, F-D07.
func TestReturnIsNotSentAfterTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "3"})
		publish(t, sqs.New(s.Config()), "orders", "", "a", "b")
		c := open(t, sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}), nil)
		other := open(t, sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}), nil)
		ds := take(t, c, 2)
		remove := s.Inject(sqstest.Fault{Action: "ChangeMessageVisibilityBatch", Code: "ServiceUnavailable"})
		start := time.Now()
		for _, d := range ds {
			must(t, d.Nack(t.Context(), 20*time.Second))
		}
		wait(3500 * time.Millisecond)
		remove()
		theirs := take(t, other, 1)[0]
		ours := take(t, c, 1)[0]
		if waited := time.Since(start); waited < 19*time.Second || waited > 22*time.Second {
			t.Errorf("%s came again here after %s, want 20s", ours.Body, waited)
		}
		if !theirs.Owned() {
			t.Errorf("the lease of %s was taken from who had it", theirs.Body)
		}
		must(t, errors.Join(theirs.Ack(t.Context()), ours.Ack(t.Context()), other.Close(t.Context()), c.Close(t.Context())))
		if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}
