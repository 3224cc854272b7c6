package main

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a command line with what it needs; the zero value has no terminal,
// no environment and nothing on standard input.
type world struct {
	env      map[string]string
	in       string
	typing   io.Reader // standard input is a terminal at which this is typed
	head     int       // whoever reads stdout goes away after so many writes, -1: at once; 0: never
	terminal bool
	width    int // of the terminal; 0: 100
	signals  chan os.Signal
	source   func(string, urls.Options) (transport.Source, error)
	wrote    func(stderr string) // hears of everything written to stderr so far
	printed  func(stdout string) // hears of everything written to stdout so far
}

type outcome struct {
	code     int
	out, err string
}

func (w world) run(t *testing.T, args ...string) outcome {
	t.Helper()
	out := &watched{heard: w.printed}
	errs := &watched{heard: w.wrote}
	a := &app{source: w.source, streams: cli.Streams{
		In: strings.NewReader(w.in), Out: out, Err: errs,
		Env: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		Environ: func() (all []string) {
			for name, v := range w.env {
				all = append(all, name+"="+v)
			}
			return all
		},
		OutTerminal: w.terminal, ErrTerminal: w.terminal,
		Width:   func() int { return cmp.Or(w.width, 100) },
		Signals: w.signals,
	}}
	if w.typing != nil {
		a.streams.In, a.streams.InTerminal = w.typing, true
	}
	if w.head != 0 {
		a.streams.Out = &leaving{Writer: out, left: w.head}
	}
	code := a.run(args)
	return outcome{code, out.String(), errs.String()}
}

// leaving is a pipe whose reader goes away.
type leaving struct {
	io.Writer
	left int
}

func (l *leaving) Write(p []byte) (int, error) {
	if l.left--; l.left < 0 {
		return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
	}
	return l.Writer.Write(p)
}

// watched is a buffer that tells of each write.
type watched struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	heard func(string)
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	n, err := w.buf.Write(p)
	all := w.buf.String()
	w.mu.Unlock()
	if w.heard != nil {
		w.heard(all)
	}
	return n, err
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func (o outcome) want(t *testing.T, code int, out, err string) {
	t.Helper()
	if o.code != code || o.out != out || o.err != err {
		t.Errorf("code %d, want %d\nstdout:\n%s\nwant:\n%s\nstderr:\n%s\nwant:\n%s", o.code, code, o.out, out, o.err, err)
	}
}
