package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/cli"
)

// F-N26: a login that goes to another host without TLS is warned of, and no other one.
func TestDatabaseInClearIsWarnedOf(t *testing.T) {
	for raw, warned := range map[string]bool{
		"postgres://u:hunter2@db.example/x":                     true,
		"postgres://u:hunter2@db.example/x?sslmode=disable":     true,
		"postgres://u:hunter2@db.example/x?sslmode=verify-full": false,
		"postgres://u:hunter2@db.example/x?sslmode=require":     false,
		"postgres://u:hunter2@localhost/x":                      false,
		"postgres://u:hunter2@[::1]:5432/x":                     false,
		"mysql://u:hunter2@10.0.0.7/x":                          true,
		"mysql://u:hunter2@10.0.0.7/x?tls=true":                 false,
		"mysql://u:hunter2@127.0.0.1/x":                         false,
		"sqlite:orders.db":                                      false,
	} {
		text := clearDatabase(raw)
		if (text != "") != warned || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %q", raw, text)
		}
	}
}

// F-N26: a token for another host goes by https, or there is a warning.
func TestTokenInClearIsWarnedOf(t *testing.T) {
	for addr, warned := range map[string]bool{"http://10.0.0.7:8391": true, "10.0.0.7:8391": true, "https://10.0.0.7:8391": false, "http://127.0.0.1:8391": false} {
		var stderr strings.Builder
		env := func(name string) (string, bool) { return "0123456789abcdef", name == "LONGSHORE_TOKEN" }
		a := &app{streams: cli.Streams{Err: &stderr, Env: env}}
		a.print = cli.NewPrinter(a.streams, cli.Options{})
		c := &ctl{app: a, admin: addr}
		if _, err := c.targets(); err != nil {
			t.Fatal(err)
		}
		if got := stderr.String(); strings.Contains(got, "without TLS") != warned || strings.Contains(got, "0123456789abcdef") {
			t.Errorf("%s: %q", addr, got)
		}
	}
}

// F-N24: a pipe in which nothing arrives does not hold up the first signal.
func TestConfigInAPipeEndsWithTheFirstSignal(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "longshore.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no named pipes here")
	}
	signals := make(chan os.Signal, 1)
	var stdout, stderr strings.Builder
	ended := make(chan int, 1)
	go func() {
		ended <- run([]string{"config", "check", "-c", fifo}, cli.Streams{Out: &stdout, Err: &stderr, Signals: signals})
	}()
	var w *os.File
	for end := time.Now().Add(30 * time.Second); ; { // it can be opened once there is a reader
		var err error
		if w, err = os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the pipe is not read: ", err)
		}
		<-time.After(10 * time.Millisecond)
	}
	signals <- syscall.SIGTERM
	select {
	case code := <-ended:
		if code != 143 {
			t.Errorf("code %d: %s", code, stderr.String())
		}
	case <-time.After(30 * time.Second):
		t.Error("it did not end")
	}
	_ = w.Close() // nothing was written; the reader ends
}

// F-N29: numbers that are too large are refused where they are read.
func TestScaleWithHugeNumbersIsRefused(t *testing.T) {
	for _, workers := range []string{"1:99999999999999999999", "99999999999999999999", "-1:5", "1:1e9", "0x10"} {
		if body, err := parseWorkers(workers); err == nil {
			t.Errorf("%s: %v", workers, body)
		}
	}
}
