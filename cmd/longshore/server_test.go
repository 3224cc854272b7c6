package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

func TestAMQPServerServesUntilASignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	var once sync.Once
	// The line on stderr comes before the URL on stdout; the address is in it.
	w := world{signals: signals, wrote: func(stderr string) {
		once.Do(func() {
			addr := strings.Fields(strings.SplitN(stderr, " on ", 2)[1])[0]
			conn, err := amqp091.Dial("amqp://guest:guest@" + strings.TrimSuffix(addr, ",") + "/")
			if err != nil {
				t.Errorf("dial: %v", err)
			} else if err := conn.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			signals <- syscall.SIGTERM
		})
	}}
	got := w.run(t, "amqp-server", "--addr", "127.0.0.1:0", "--flavor", "4.3")
	if got.code != 0 || !strings.HasPrefix(got.out, "amqp://guest:guest@127.0.0.1:") {
		t.Errorf("%+v", got)
	}
}

func TestAMQPServerInJSON(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	got := world{signals: signals}.run(t, "amqp-server", "--addr", "127.0.0.1:0", "--json")
	var line struct{ Server, Addr, URL string }
	if err := json.Unmarshal([]byte(got.out), &line); err != nil || line.Server != "amqp" || line.URL == "" || got.code != 0 {
		t.Errorf("%v %+v %+v", err, line, got)
	}
}

func TestAMQPServerOnATakenAddress(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	got := world{}.run(t, "amqp-server", "--addr", ln.Addr().String())
	if got.code != 2 || !strings.Contains(got.err, "error[config]: listen on "+ln.Addr().String()) || !strings.Contains(got.err, "help: choose a free address") {
		t.Errorf("%+v", got)
	}
}

func TestSQSServerServesUntilASignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	var once sync.Once
	w := world{signals: signals, wrote: func(stderr string) {
		once.Do(func() {
			addr := strings.TrimSuffix(strings.Fields(strings.SplitN(stderr, " on ", 2)[1])[0], ",")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Amz-Target", "AmazonSQS.ListQueues")
			req.Header.Set("Content-Type", "application/x-amz-json-1.0")
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Error(err)
			} else if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
				t.Error(resp.Status)
			}
			http.DefaultClient.CloseIdleConnections()
			signals <- syscall.SIGTERM
		})
	}}
	got := w.run(t, "sqs-server", "--addr", "127.0.0.1:0")
	if got.code != 0 || !strings.HasPrefix(got.out, "http://127.0.0.1:") {
		t.Errorf("%+v", got)
	}
}
