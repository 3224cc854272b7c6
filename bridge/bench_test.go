package bridge_test

import (
	"context"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/bridge/internal/ledger"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// BenchmarkVerify adds up a ledger of 1,000,000 messages; the bar is 10 s of the processor.
func BenchmarkVerify(b *testing.B) {
	const messages = 1_000_000
	dir := b.TempDir()
	l, err := ledger.Open(dir, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < messages; i += 8 {
				r := ledger.Record{Kind: ledger.Taken, ID: "message-" + strconv.Itoa(i), Digest: [16]byte{byte(i), byte(i >> 8)}, From: 1, To: 2, Key: uint64(i%38_000 + 1)} //nolint:gosec // small
				p, err := l.Begin(r)
				if err != nil {
					b.Error(err)
					return
				}
				r.Kind = ledger.Confirmed
				if p, err = l.Begin(r); err == nil && i%1000 == w {
					err = p.Wait(context.Background())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	cpu := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of this process there is always one
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for b.Loop() {
		begin := cpu()
		v, err := bridge.Verify(b.Context(), dir, nil)
		if err != nil || v.Confirmed != messages || len(v.Missing) > 0 {
			b.Fatalf("%v, %v", v, err)
		}
		b.ReportMetric((cpu() - begin).Seconds(), "cpu-s/verify")
	}
}

// A route from SQS to SQS receives, sends and deletes by tens: 0.3 calls for each message are
// possible.
func TestCallsFromSQSToSQS(t *testing.T) {
	srv := sqstest.New(t)
	srv.CreateQueue(t, "from", nil)
	srv.CreateQueue(t, "to", nil)
	b := sqs.New(srv.Config())
	const messages = 4000
	for from := 0; from < messages; from += 100 {
		msgs := make([]*longshore.Message, 100) // a key each
		for i := range msgs {
			msgs[i] = &longshore.Message{ID: strconv.Itoa(from + i), Key: []byte(strconv.Itoa(i)), Body: make([]byte, 1024)}
		}
		put(t, b.Queue("from", sqs.QueueConfig{}), msgs...)
	}
	srv.ForgetCalls()
	r := newRoute(t, bridge.Config{From: b.Queue("from", sqs.QueueConfig{}), To: b.Queue("to", sqs.QueueConfig{}),
		Ledger: openLedger(t, t.TempDir()), Container: container.Config{Workers: container.Workers{Min: 64, Max: 64}, Logger: zap.NewNop()}})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "all are moved", func() bool { return r.Stats().Forwarded == messages })
	stop(t, r)
	calls := float64(srv.Count()) / messages
	t.Logf("%.3f calls for each message: receive %d, send %d, delete %d", calls, srv.Count("ReceiveMessage"), srv.Count("SendMessage", "SendMessageBatch"), srv.Count("DeleteMessage", "DeleteMessageBatch"))
	if calls > 0.45 { // 0.305 on a quiet machine, where bench/ has the bar of 0.31; one call each would be 1.2
		t.Errorf("%.3f calls for each message", calls)
	}
}
