package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// bridgeCases compare routes with loops written by hand: consume, publish with at most
// bridgeWindow unconfirmed messages, and settle each after its confirmation. The loops keep no
// order by key where a publish fails, no ledger and no identities. 1 KiB, 1,000 keys; the route
// writes its ledger, and both have the same window.
func bridgeCases() (cs []benchCase) {
	ends := []bridgeKind{{"rabbit", "RabbitMQ", "AMQP_URL", newRabbitEnd}, {"kafka", "Kafka", "KAFKA_ADDRS", newKafkaEnd}, {"sqs", "SQS", "SQS_ENDPOINT", newQueueEnd}}
	for _, from := range ends {
		for _, to := range ends {
			needs := from.needs
			if to.needs != from.needs {
				needs = to.needs // the other is checked when it runs
			}
			cs = append(cs, benchCase{"bridge/" + from.short + "-" + to.short, needs, func(o options, r *report) error { return comparePair(from, to, o, r) }})
		}
	}
	return append(cs, benchCase{"bridge/backlog", "KAFKA_ADDRS", bridgeBacklog})
}

// bridgeKind makes ends of one broker.
type bridgeKind struct {
	short, name, needs string
	make               func() (bridgeEnd, error)
}

const (
	bridgeWindow = 256
	bridgeKeys   = 1000
)

// comparePair measures one pair of brokers. From RabbitMQ to itself its own shovel takes part, and
// from SQS to itself calls are counted.
func comparePair(from, to bridgeKind, o options, r *report) error {
	for _, k := range []bridgeKind{from, to} {
		if os.Getenv(k.needs) == "" {
			return fmt.Errorf("%s is not set", k.needs)
		}
	}
	most := 20_000
	if from.short == "kafka" && to.short == "kafka" {
		most = 60_000 // or the start of a group is a third of the time
	}
	n, calls := o.count(most)/10*10, []float64(nil)
	vs := []variant{
		{"hand-written loop, window 256", onEnds(from, to, n, byHand)},
		{"longshore bridge, 256 workers, ledger", onEnds(from, to, n, func(a, b bridgeEnd, n int) (sample, error) {
			count := callsOf(a, b)
			s, err := route(n, a.source(), b.source())
			calls = append(calls, float64(callsOf(a, b)-count)/float64(n))
			return s, err
		})},
	}
	if management := os.Getenv("AMQP_MANAGEMENT"); from.short == "rabbit" && to.short == "rabbit" && shovels(management) {
		vs = append(vs, variant{"RabbitMQ's shovel, on-confirm, prefetch 256", onEnds(from, to, n, func(a, b bridgeEnd, n int) (sample, error) { return shovel(management, a, b, n) })})
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	name := from.name + " to " + to.name
	rabbitTable(r, name+", 1 KiB, "+fmt.Sprint(bridgeKeys)+" keys", vs, ss)
	ratio := median(ratios(ss[1], ss[0], sample.rate))
	r.bar("bridge "+name, fmt.Sprintf("%.2f × hand-written", ratio), "≥ 0.9 ×", ratio >= 0.9)
	if from.short == "sqs" && to.short == "sqs" {
		r.bar("bridge "+name+", calls", fmt.Sprintf("%.3f for each message", median(calls)), "≤ 0.31", median(calls) <= 0.31)
	}
	return nil
}

// callsOf are the calls of Longshore's clients so far.
func callsOf(ends ...bridgeEnd) (n int64) {
	for _, e := range ends {
		if q, ok := e.(*queueEnd); ok {
			n += q.calls.calls.Load()
		}
	}
	return n
}

// onEnds runs f between a filled and an empty end of their own.
func onEnds(from, to bridgeKind, n int, f func(a, b bridgeEnd, n int) (sample, error)) func() (sample, error) {
	return func() (s sample, err error) {
		a, err := from.make()
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, a.remove()) }()
		b, err := to.make()
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, b.remove()) }()
		if err := fillEnd(a, n, 1024); err != nil {
			return s, err
		}
		return f(a, b, n)
	}
}

// byHand moves n messages with a loop as one writes it for the purpose.
func byHand(a, b bridgeEnd, n int) (sample, error) {
	w := startWatch()
	send, stop, err := b.writer()
	if err != nil {
		return sample{}, err
	}
	window := make(chan struct{}, bridgeWindow)
	var failed atomic.Pointer[error]
	var open sync.WaitGroup
	err = a.read(n, func(m handMessage, settle func() error) {
		window <- struct{}{}
		open.Add(1)
		send(m, func(err error) {
			defer open.Done()
			if err == nil {
				err = settle()
			}
			if err != nil {
				failed.Store(&err)
			}
			<-window
		})
	})
	open.Wait()
	s := w.stop(n)
	stop()
	if e := failed.Load(); e != nil {
		err = errors.Join(err, *e)
	}
	return s, err
}

// shovels reports whether the broker has its shovel plugin.
func shovels(management string) bool {
	if management == "" {
		return false
	}
	resp, err := http.Get(management + "/api/parameters/shovel") //nolint:noctx // a bench
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK && put(http.MethodPut, management+"/api/parameters/shovel/%2F/longshore-bench-probe", nil) == http.StatusBadRequest
}

// shovel has the broker move the messages by itself.
func shovel(management string, a, b bridgeEnd, n int) (s sample, err error) {
	from, okA := a.(*rabbitEnd)
	to, okB := b.(*rabbitEnd)
	if !okA || !okB {
		return s, errors.New("not on RabbitMQ")
	}
	at := management + "/api/parameters/shovel/%2F/" + from.queue
	w := startWatch()
	if code := put(http.MethodPut, at, map[string]any{"value": map[string]any{"src-protocol": "amqp091", "src-uri": "amqp://", "src-queue": from.queue, "src-prefetch-count": bridgeWindow,
		"dest-protocol": "amqp091", "dest-uri": "amqp://", "dest-queue": to.queue, "ack-mode": "on-confirm"}}); code/100 != 2 {
		return s, fmt.Errorf("the shovel is refused: %d", code)
	}
	for end := time.Now().Add(5 * time.Minute); ; {
		moved, err := to.count()
		if err != nil || moved == n {
			break
		}
		if time.Now().After(end) {
			return s, fmt.Errorf("the shovel has moved %d of %d", moved, n)
		}
		<-time.After(5 * time.Millisecond)
	}
	s = w.stop(n)
	if code := put(http.MethodDelete, at, nil); code/100 != 2 {
		err = fmt.Errorf("the shovel is not removed: %d", code)
	}
	return s, err
}

// put sends a request to the management API; 0 = no answer.
func put(method, url string, body any) int {
	text, err := json.Marshal(body)
	if err != nil {
		return 0
	}
	req, err := http.NewRequest(method, url, bytes.NewReader(text)) //nolint:noctx // a bench
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close() // the code is all that counts
	return resp.StatusCode
}

// route runs a bridge until it has forwarded n messages.
func route(n int, from, to transport.Source) (s sample, err error) {
	dir, err := os.MkdirTemp("", "longshore-bench-ledger-")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ledger, err := bridge.OpenLedger(dir)
	if err != nil {
		return s, err
	}
	w := startWatch()
	r, err := bridge.New(bridge.Config{Name: "bench", From: from, To: to, Ledger: ledger,
		Container: container.Config{Workers: container.Workers{Min: bridgeWindow, Max: bridgeWindow}, Logger: zap.NewNop()}})
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(n)*time.Millisecond*2+5*time.Minute)
	defer cancel()
	if err := r.Start(ctx); err != nil {
		return s, err
	}
	for r.Stats().Forwarded < int64(n) && ctx.Err() == nil {
		<-time.After(time.Millisecond)
	}
	s = w.stop(n)
	return s, errors.Join(ctx.Err(), r.Stop(context.Background()), ledger.Close())
}
