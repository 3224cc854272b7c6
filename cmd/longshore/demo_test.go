package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestDemoInAPipe(t *testing.T) {
	got := world{}.run(t, "demo", "--for", "2s", "--seed", "7", "-v")
	if got.code != 0 || !strings.Contains(got.out, "nothing lost") || !strings.Contains(got.out, "drained in ") {
		t.Errorf("code %d\n%s\n%s", got.code, got.out, got.err)
	}
	for _, want := range []string{" burst ", " poison ", " throttle ", " fault ", " recover ", " drain ", " status "} {
		if !strings.Contains(got.err, want) {
			t.Errorf("no%sin\n%s", want, got.err)
		}
	}
	told := slices.DeleteFunc(strings.Split(got.err, "\n"), func(line string) bool { return strings.Contains(line, "\t") }) // without the log of -v
	if first := told[0]; !strings.HasPrefix(first, "watch it at http://127.0.0.1:") || !strings.HasSuffix(first, "(logs one browser in)") {
		t.Errorf("the first line is %q", first)
	}
	if strings.Contains(got.out+got.err, "\x1b") {
		t.Error("escape codes in a pipe")
	}
	tellsLives(t, got.err)
}

// tellsLives looks for what -v tells of the life of each container.
func tellsLives(t *testing.T, stderr string) {
	t.Helper()
	for _, transport := range []string{"rabbitmq", "kafka", "aws_sqs"} {
		phrases := []string{"container starting", "topology declared", "container subscribed", "container draining", "container drained"}
		if transport == "rabbitmq" { // the others' consumers outlive a connection
			phrases = append(phrases, "container recovering", "consumer lost")
		}
		for _, phrase := range phrases {
			if !slices.ContainsFunc(strings.Split(stderr, "\n"), func(line string) bool {
				return strings.Contains(line, "\t"+phrase+"\t") && strings.Contains(line, `"transport": "`+transport+`"`)
			}) {
				t.Errorf("%s: no line %q", transport, phrase)
			}
		}
	}
}

func TestDemoInJSON(t *testing.T) {
	got := world{}.run(t, "demo", "--for", "3s", "--seed", "7", "--json")
	var last struct {
		Type    string
		OK      bool
		Brokers []struct {
			Name                                 string
			Published, Handled, Dead, Lost, Left int
		}
	}
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
	}
	if got.code != 0 || got.err != "" || last.Type != "result" || !last.OK || len(last.Brokers) == 0 {
		t.Errorf("code %d, stderr %q, last %+v", got.code, got.err, last)
	}
	for _, b := range last.Brokers {
		if b.Published == 0 || b.Published != b.Handled+b.Dead+b.Left || b.Dead != 4 {
			t.Errorf("%+v does not add up", b)
		}
	}
}

func TestDemoMigrates(t *testing.T) {
	got := world{}.run(t, "demo", "--migrate", "--for", "1s", "--seed", "7")
	for _, want := range []string{"rabbitmq → kafka", "moved to kafka with 4 dead letters", "missing 0, extra 0, changed 0, copies 0, out of order 0; left on rabbitmq: 0", "nothing lost"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("code %d, no %q\n%s\n%s", got.code, want, got.out, got.err)
		}
	}
	for _, other := range []string{"--stay", "--sqs=http://localhost"} {
		if got := (world{}).run(t, "demo", "--migrate", other); got.code != 2 || !strings.Contains(got.err, "cannot be used together") {
			t.Errorf("%s: %+v", other, got)
		}
	}
}

func TestDemoDrainsOnTheFirstSignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	var once sync.Once
	w := world{signals: signals, wrote: func(stderr string) {
		if strings.Contains(stderr, " burst ") {
			once.Do(func() { signals <- os.Interrupt })
		}
	}}
	got := w.run(t, "demo", "--for", "5s", "--seed", "7")
	if got.code != 0 || !strings.Contains(got.out, "nothing lost") {
		t.Errorf("code %d\n%s\n%s", got.code, got.out, got.err)
	}
	if strings.Contains(got.err, " poison ") {
		t.Error("it went on after the signal")
	}
}

func TestDemoStopsAtOnceOnTheSecondSignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	var once sync.Once
	w := world{signals: signals, wrote: func(stderr string) {
		if strings.Contains(stderr, " scale ") {
			once.Do(func() { signals <- os.Interrupt; signals <- os.Interrupt })
		}
	}}
	got := w.run(t, "demo", "--for", "5s", "--seed", "7")
	if got.code != 130 || !strings.Contains(got.out, "stopped at once") || !strings.Contains(got.out, " orders: o-") || strings.Contains(got.out, "nothing lost") {
		t.Errorf("code %d\n%s\n%s", got.code, got.out, got.err)
	}
}

func TestDemoBrokerThatDoesNotAnswer(t *testing.T) {
	got := world{}.run(t, "demo", "--for", "1s", "--timeout", "300ms", "--amqp", "amqp://guest:hidden-pw@127.0.0.1:9/")
	// Of a busy machine it is said that the start took too long.
	if got.code != 6 || !strings.Contains(got.err, "error[unreachable]: ") {
		t.Errorf("%+v", got)
	}
	if strings.Contains(got.out+got.err, "hidden-pw") {
		t.Error("the password is shown")
	}
}
