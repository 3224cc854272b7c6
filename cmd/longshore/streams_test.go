package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// `longshore X | head -1` ends as other tools do: quietly, with 141.
func TestNobodyReadsTheAnswer(t *testing.T) {
	w, _ := dead(t)
	for name, args := range map[string][]string{
		"explain": {"explain"}, "page": {"explain", "auth"}, "version": {"version"}, "json": {"version", "--json"}, "reference": {"config", "reference"},
		"help": {"--help"}, "verb's help": {"help", "peek"}, "completion": {"completion", "bash"}, "ddl": {"mutex", "ddl", "--dialect", "postgres"},
		"peek": {"peek", "x"}, "list": {"dlq", "list", "x", "-q"}, "show": {"dlq", "show", "x", "o-1", "--raw"}, "dry run": {"dlq", "purge", "x", "--dry-run"},
	} {
		w.head = -1
		if got := w.run(t, args...); got.code != 141 || got.out != "" || got.err != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	w.head = 2
	if got := w.run(t, "peek", "x", "--json"); got.code != 141 || strings.Count(got.out, "\n") != 2 || got.err != "" {
		t.Errorf("a stream of which two lines are read: %+v", got)
	}
}

func TestAMistakeIsAMistakeWhoeverReads(t *testing.T) {
	if got := (world{head: -1}).run(t, "explain", "nope"); got.code != 2 || !strings.HasPrefix(got.err, "error[usage]: ") {
		t.Errorf("%+v", got)
	}
	// A file with mistakes is the answer no, but who does not read it learns of his own going.
	path := configFile(t, "contaners: {}\n")
	if got := (world{head: -1}).run(t, "config", "check", "-c", path); got.code != 141 || got.err != "" {
		t.Errorf("%+v", got)
	}
}

// What changes something has done it when its report cannot be written.
func TestReplayIsDoneAlthoughNobodyReadsItsReport(t *testing.T) {
	w, b := dead(t)
	w.head = -1
	if got := w.run(t, "dlq", "replay", "x", "--yes", "-n", "3", "--json"); got.code != 141 || got.err != "" {
		t.Errorf("%+v", got)
	}
	if left, there := b.Inspect("orders.dlq"), b.Inspect("orders"); left.Ready != 0 || there.Ready != 3 {
		t.Errorf("left %+v, sent %+v", left, there)
	}
}

// A signal ends what waits for somebody to type.
func TestASignalEndsAQuestionAndARead(t *testing.T) {
	w, b := dead(t)
	for name, args := range map[string][]string{"question": {"dlq", "purge", "x"}, "standard input": {"publish", "x", "-"}} {
		typed, hand := io.Pipe()
		asked := w
		asked.typing, asked.signals = typed, make(chan os.Signal, 1)
		asked.wrote = once("[y/N]", func() { asked.signals <- os.Interrupt })
		if name == "standard input" {
			asked.signals <- os.Interrupt
		}
		got := asked.run(t, args...)
		if got.code != 130 || got.out != "" || strings.Contains(got.err, "error[") {
			t.Errorf("%s: %+v", name, got)
		}
		if err := errors.Join(hand.Close(), typed.Close()); err != nil {
			t.Error(err)
		}
	}
	if n := b.Inspect("orders.dlq").Ready; n != 3 {
		t.Errorf("%d dead letters are left", n)
	}
}

func TestTheSecondSignalEndsWhatDoesNotListen(t *testing.T) {
	from, to, stuck := make(chan os.Signal, 2), make(chan os.Signal, 2), make(chan struct{})
	ended := make(chan struct{})
	from <- os.Interrupt
	from <- os.Interrupt
	if code := obey(from, to, time.Millisecond, func() int { defer close(ended); <-stuck; return 0 }); code != 130 {
		t.Errorf("code %d", code)
	}
	if len(to) != 2 {
		t.Errorf("the verb heard of %d signals", len(to))
	}
	close(stuck)
	<-ended
	if code := obey(nil, to, time.Hour, func() int { return 7 }); code != 7 {
		t.Errorf("code %d of a verb that ends by itself", code)
	}
}

// With --json there is JSON on stdout and nothing else, and on stderr where something is wrong.
func TestJSONOfEveryVerb(t *testing.T) {
	w, _ := dead(t)
	w.in = "x"
	path := configFile(t, "containers: {orders: {source: mem://orders}}\n")
	for _, args := range []string{"version", "explain", "explain auth", "config reference", "config check -c " + path, "config show -c " + path, "mutex ddl --dialect mysql",
		"peek x", "dlq list x", "dlq show x o-1", "dlq replay x --dry-run", "dlq purge x --dry-run", "dlq purge x --yes --id o-1", "publish x -", "publish x - --dry-run"} {
		got := w.run(t, append(strings.Fields(args), "--json")...)
		if n := documents(t, got.out); got.code != 0 || n < 1 || strings.Contains(got.err, "error") {
			t.Errorf("%s: %d documents, %+v", args, n, got)
		}
	}
	bad := configFile(t, "contaners: {}\n")
	for args, code := range map[string]int{"explain nope": 2, "config show -c " + bad: 1, "config check -c nowhere": 2, "peek x --format %k": 2, "dlq show x o-1 --raw": 2,
		"dlq show x o-9": 1, "dlq replay x": 2, "dlq": 2, "config": 2, "completion tcsh": 2, "peek": 2, "frob": 2, "ctl status --admin 127.0.0.1:1": 6} {
		got := w.run(t, append(strings.Fields(args), "--json")...)
		if n := documents(t, got.err); got.code != code || got.out != "" || n < 1 {
			t.Errorf("%s: %d errors, %+v", args, n, got)
		}
	}
}

// documents counts JSON values, of which each is an object or a list.
func documents(t *testing.T, text string) (n int) {
	t.Helper()
	for dec := json.NewDecoder(bytes.NewBufferString(text)); ; n++ {
		var v any
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return n
		} else if err != nil {
			t.Errorf("%v in %q", err, text)
			return n
		}
	}
}

func TestAVerbOnMemoryIsNeverReached(t *testing.T) {
	if got := (world{}).run(t, "peek", "orders", "-c", configFile(t, "containers: {orders: {source: mem://orders}}\n")); got.code != 2 || !strings.Contains(got.err, "error[unsupported]: reach a mem:// queue") {
		t.Errorf("%+v", got)
	}
}
