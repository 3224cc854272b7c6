package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"go.uber.org/zap"
	"golang.org/x/term"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// rabbit is a container on the embedded broker, whose name could harm a terminal, with its
// admin server.
func rabbit(t *testing.T, handler longshore.HandlerFunc) *instance {
	t.Helper()
	srv := amqptest.New(t, amqptest.Config{})
	in := &instance{limit: throttle.NewPermits(20)}
	q := amqp.New(srv.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	var err error
	in.c, err = container.New(q, handler, container.Config{Throttle: in.limit, Logger: zap.NewNop(), DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, in.c)
	in.a, err = admin.New(admin.Config{Addr: "127.0.0.1:0", Containers: []*container.ListenerContainer{in.c}, Logger: zap.NewNop(),
		Operators: map[string]transport.Secret{"anna": transport.Static(ctlToken)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.a.Stop(context.Background()) })
	return in
}

// display is a terminal, with what was written to it.
type display struct {
	t    *testing.T
	pty  *os.File
	mu   sync.Mutex // guards the rest
	emu  *vt.Emulator
	all  bytes.Buffer
	code chan int
}

// play runs the command on a pseudo-terminal.
func play(t *testing.T, env map[string]string, w, h int, args ...string) (d *display, tty *os.File, before *term.State) {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if before, err = term.GetState(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	d = &display{t: t, pty: ptmx, emu: vt.NewEmulator(w, h), code: make(chan int, 1)}
	d.resize(w, h)
	signals := make(chan os.Signal, 2)
	var wg sync.WaitGroup
	wg.Go(func() { // what the program draws
		buf := make([]byte, 4096)
		for {
			n, err := ptmx.Read(buf)
			if err != nil {
				return
			}
			d.mu.Lock()
			d.all.Write(buf[:n])
			_, _ = d.emu.Write(buf[:n])
			d.mu.Unlock()
		}
	})
	wg.Go(func() { _, _ = io.Copy(ptmx, d.emu) }) // what the terminal answers to its questions
	a := &app{streams: cli.Streams{In: tty, Out: tty, Err: tty, InTerminal: true, OutTerminal: true, ErrTerminal: true, Signals: signals,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Environ: func() (all []string) {
			for name, v := range env {
				all = append(all, name+"="+v)
			}
			return all
		}}}
	done := make(chan struct{})
	go func() { defer close(done); d.code <- a.run(args) }()
	t.Cleanup(func() {
		signals <- os.Interrupt
		<-done
		_ = tty.Close()
		_ = ptmx.Close()
		_ = d.emu.InputPipe().(io.Closer).Close() //nolint:errcheck // it is one; ends the reads; Close itself races with them
		wg.Wait()
	})
	return d, tty, before
}

func (d *display) resize(w, h int) {
	d.t.Helper()
	d.mu.Lock()
	d.emu.Resize(w, h)
	d.mu.Unlock()
	if err := pty.Setsize(d.pty, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}); err != nil {
		d.t.Fatal(err)
	}
}

// text is what the display shows.
func (d *display) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.emu.String()
}

func (d *display) press(keys string) {
	if _, err := d.pty.WriteString(keys); err != nil {
		d.t.Error(err)
	}
}

// shows waits until the display shows what the expression describes.
func (d *display) shows(expr string) {
	d.t.Helper()
	re, end := regexp.MustCompile("(?m)"+expr), time.Now().Add(15*time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(end) {
		if re.MatchString(d.text()) {
			return
		}
		<-tick.C
	}
	d.t.Fatalf("never %q:\n%s", expr, d.text())
}

// until waits until something was written and returns all that was.
func (d *display) until(text string) string {
	end := time.Now().Add(5 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		d.mu.Lock()
		all := d.all.String()
		d.mu.Unlock()
		if strings.Contains(all, text) || time.Now().After(end) {
			return all
		}
		<-tick.C
	}
}

func (d *display) ends(code int) {
	d.t.Helper()
	select {
	case got := <-d.code:
		if got != code {
			d.t.Errorf("exit code %d, want %d", got, code)
		}
	case <-time.After(10 * time.Second):
		d.t.Fatal("it does not end")
	}
}

// The whole way: a container on the embedded broker, its admin server, the command on a
// pseudo-terminal.
func TestTopOnATerminal(t *testing.T) {
	release := make(chan struct{})
	in := rabbit(t, func(ctx context.Context, d *longshore.Delivery) error {
		if strings.HasPrefix(string(d.Body), "slow") {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return nil
	})
	defer close(release)
	env := map[string]string{"TERM": "xterm-256color", "LANG": "en_US.UTF-8", "LONGSHORE_TOKEN": ctlToken}
	containertest.PublishMessages(t, in.c, &longshore.Message{Key: []byte("\x1b[31mred\u202e"), Body: []byte("slow")})
	d, tty, before := play(t, env, 80, 24, "top", in.a.Addr(), "127.0.0.1:1")
	d.shows(`1 container, `)
	d.shows(`● orders +running +0 `)
	d.shows(`○ 127\.0\.0\.1:1 has not answered: .*refused`)
	d.press("p")
	d.shows(`Pause orders on 127\.0\.0\.1:\d+\?`)
	d.press("deploy\r")
	d.shows(`done: orders: paused on 1 instance`)
	d.shows(`‖ orders +paused`)
	d.shows(`it is paused by anna \(deploy\), since`)
	if in.c.State() != container.StatePaused {
		t.Error(in.c.State())
	}
	d.press("\r")
	d.shows(`› orders .*\n‖ paused`)
	d.shows(`0x1b5b33316d726564e2… running +1/`)
	d.press("t\x7f\x7f4\t2m\t\t")
	d.press("\r")
	d.shows(`throttle 1 of 4 permits in use, set by anna`)
	d.press("r\r")
	d.shows(`● running|▲ running`)
	d.resize(130, 30)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil { // the kernel sends it to those whose terminal it is
		t.Fatal(err)
	}
	d.press("\x1b")
	d.shows(`p99 +source`)
	d.press("\x03")
	d.ends(0)
	if after, err := term.GetState(int(tty.Fd())); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("the terminal was %+v and is %+v, %v", before, after, err)
	}
	all := d.until("\x1b[?1049l")
	for _, want := range []string{"\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q was not written", want)
		}
	}
	if strings.LastIndex(all, "\x1b[?1049l") < strings.LastIndex(all, "\x1b[?1049h") || strings.LastIndex(all, "\x1b[?25h") < strings.LastIndex(all, "\x1b[?25l") {
		t.Error("the screen was not left as it was")
	}
	if strings.Contains(all, ctlToken) || strings.Contains(all, "\x1b[31mred") || strings.Contains(all, "\u202e") {
		t.Error("a token or the key's escape sequence went to the terminal")
	}
}

// Without a terminal there is a line for each container.
func TestTopInAPipe(t *testing.T) {
	one, two := running(t, nil), running(t, nil)
	w := reach(one, two)
	got := w.run(t, "top", "-n", "1")
	if got.code != 0 || !regexp.MustCompile(`^\S+T\S+ orders state=running instances=2 rate=0\.0 backlog=\S+ oldest=\S+ workers=\d+/20 busy=0 p50=\S+ p99=\S+ parked=0 retried=0 dead=0\n$`).MatchString(got.out) || got.err != "" {
		t.Errorf("%+v", got)
	}
	got = w.run(t, "top", "-n", "2", "--every", "10ms", "--json")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	var l struct {
		Container string
		Instances int
	}
	if err := json.Unmarshal([]byte(lines[0]), &l); err != nil || len(lines) != 2 || l.Container != "orders" || l.Instances != 2 {
		t.Errorf("%v, %+v", err, got)
	}
	w.env["LONGSHORE_ADMIN"] = one.a.Addr() + ",127.0.0.1:1"
	if got = w.run(t, "top", "-n", "1"); got.code != 0 || !strings.Contains(got.out, "instances=1") || !strings.Contains(got.err, "127.0.0.1:1 does not answer") {
		t.Errorf("one of two answers: %+v", got)
	}
	w.env["LONGSHORE_ADMIN"] = "127.0.0.1:1"
	if got = w.run(t, "top", "-n", "1"); got.code != 6 || !strings.Contains(got.err, "error[unreachable]") || strings.Contains(got.out+got.err, ctlToken) {
		t.Errorf("none answers: %+v", got)
	}
	for _, args := range [][]string{{"--token-file", "a", "--token-file", "b"}, {"--token-file", "other:1=x"}, {"--token-file", "=x"}, {"--every", "-1s"}, {one.a.Addr(), "http://" + one.a.Addr()}} {
		if got = w.run(t, append([]string{"top"}, args...)...); got.code != 2 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// Each instance gets its own token, read from a file again and again.
func TestTokensOfInstances(t *testing.T) {
	in := running(t, nil)
	file := t.TempDir() + "/token"
	if err := os.WriteFile(file, []byte(ctlToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := &instances{app: &app{print: cli.NewPrinter(cli.Streams{Err: io.Discard}, cli.Options{})}, tokenFiles: []string{in.a.Addr() + "=" + file}}
	targets, err := i.find([]string{in.a.Addr(), "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := targets[0].Token.Get(t.Context()); err != nil || got != ctlToken || targets[0].Name != in.a.Addr() {
		t.Errorf("%q, %v, %s", got, err, targets[0].Name)
	}
	if _, err := targets[1].Token.Get(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the other instance's token is looked for in its own file: %v", err)
	}
}
