package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-L01: open, consume, settle in all ways, be cut, go on, close, many times, and
// openings that fail: goroutines and connections are back at the baseline.
func TestNothingSurvivesClose(t *testing.T) {
	s := sqstest.New(t)
	var links atomic.Int64 // at the server
	srv := httptest.NewUnstartedServer(s)
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state { //nolint:exhaustive // these two are each there once
		case http.StateNew:
			links.Add(1)
		case http.StateClosed:
			links.Add(-1)
		}
	}
	srv.Start()
	defer srv.Close()
	proxy := faultproxy.New(t, srv.Listener.Addr().String())
	b := sqs.New(sqs.Config{Region: "us-east-1", Endpoint: "http://" + proxy.Addr(), Credentials: sqs.Keys("x", transport.Static("x"), transport.Secret{})})
	cycle := func(queue string) {
		s.CreateQueue(t, queue, nil)
		publish(t, b, queue, "", numbered(10)...)
		c := open(t, b.Queue(queue, sqs.QueueConfig{}), &watcher{})
		ds := take(t, c, 10)
		for _, d := range ds[:5] {
			must(t, d.Ack(t.Context()))
		}
		proxy.CutAll()
		must(t, ds[5].Nack(t.Context(), 0))
		must(t, ds[6].Nack(t.Context(), time.Hour))
		must(t, take(t, c, 1)[0].Ack(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		must(t, c.Close(ctx))
		cancel()
		if _, err := b.Queue("missing", sqs.QueueConfig{}).Open(t.Context(), transport.OpenOptions{}); !errors.Is(err, longshore.CodeNotFound) {
			t.Errorf("missing queue: %v", err)
		}
	}
	cycle("first")
	until(t, 10*time.Second, "no connection is left", func() bool { return links.Load() == 0 })
	before := runtime.NumGoroutine()
	for i := range 20 {
		cycle(fmt.Sprint("orders-", i))
	}
	until(t, 10*time.Second, "no connection is left", func() bool { return links.Load() == 0 })
	until(t, 10*time.Second, "goroutines are back at the baseline", func() bool { return runtime.NumGoroutine() <= before })
}
