package demo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/cli"
)

// play writes a story into a ledger: "p0" confirms order 0, "b" begins a call,
// "d" ends it well, "s" settles, "u" takes a settlement back, "r" rejects, "x" is
// found dead, "l" left in the queue.
func play(l *ledger, story string) {
	for _, step := range strings.Fields(story) {
		n := int(step[1] - '0')
		switch step[0] {
		case 'p':
			l.confirm(n)
		case 'b':
			l.begin(n)
		case 'd':
			l.done(n)
		case 's':
			l.settled(n, 1)
		case 'u':
			l.unsettled(n)
		case 'r':
			l.settled(n, 1)
			l.rejected(n)
		case 'x':
			l.dead(n)
		case 'l':
			l.left(n)
		}
	}
}

func TestTheLedgerSeesWhatMustNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		story string
		want  Count
		bad   bool
	}{
		"all well":                       {"p0 p1 b0 d0 s0 b1 d1 s1", Count{Published: 2, Handled: 2}, false},
		"retried":                        {"p0 b0 b0 d0 s0", Count{Published: 1, Handled: 1, Redelivered: 1}, false},
		"dead":                           {"p0 b0 r0 x0", Count{Published: 1, Dead: 1}, false},
		"lost":                           {"p0 p1 b0 d0 s0", Count{Published: 2, Handled: 1, Lost: 1, LostIDs: []int{1}}, true},
		"rejected, but not there":        {"p0 b0 r0", Count{Published: 1, Lost: 1, LostIDs: []int{0}}, true},
		"still queued":                   {"p0 p1 b0 d0 s0 l1", Count{Published: 2, Handled: 1, Left: 1}, false},
		"never confirmed, never seen":    {"p0 b0 d0 s0", Count{Published: 1, Handled: 1}, false},
		"never confirmed, yet it came":   {"b1 d1 s1", Count{Published: 1, Handled: 1}, false},
		"handled twice, settled once":    {"p0 b0 d0 b0 d0 s0", Count{Published: 1, Handled: 1, Redelivered: 1}, false},
		"ack not carried out, came back": {"p0 b0 d0 s0 u0 b0 d0 s0", Count{Published: 1, Handled: 1, Redelivered: 1}, false},
		"settled twice":                  {"p0 b0 d0 s0 b0 d0 s0", Count{Published: 1, Handled: 1, Redelivered: 1, Twice: 1, TwiceIDs: []int{0}}, true},
		"handled and dead":               {"p0 b0 d0 s0 x0", Count{Published: 1, Handled: 1, Twice: 1, TwiceIDs: []int{0}}, true},
		"out of order":                   {"p0 p2 b2 d2 s2 b0 d0 s0", Count{Published: 2, Handled: 2, Inverted: 1, InvertedIDs: []int{2}}, true},
		"other keys may overtake":        {"p0 p1 b1 d1 s1 b0 d0 s0", Count{Published: 2, Handled: 2}, false},
		"a repetition inverts nothing":   {"p0 p2 b0 d0 b2 d2 s2 b0 d0 s0", Count{Published: 2, Handled: 2, Redelivered: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			for i := range 3 {
				l.add(order{key: i % 2}) // 0 and 2 have the same key
			}
			play(l, c.story)
			if got := l.count(); fmt.Sprint(got) != fmt.Sprint(c.want) || got.Bad() != c.bad {
				t.Errorf("%+v (bad %v), want %+v", got, got.Bad(), c.want)
			}
		})
	}
}

func TestOpenOrders(t *testing.T) {
	l := &ledger{}
	for range 3 {
		l.add(order{})
	}
	for i, want := range []int{1, 2, 2, 2, 1, 1, 0} {
		play(l, strings.Fields("p0 p1 b0 b0 d0 d0 r1")[i])
		if got := l.waiting(); got != want {
			t.Errorf("step %d: %d waiting, want %d", i, got, want)
		}
	}
	play(l, "b9 d9") // an order of somebody else is no order of ours
	if l.waiting() != 0 || l.unseen() != 1 {
		t.Errorf("%d waiting, %d unseen", l.waiting(), l.unseen())
	}
}

func TestTheResultNamesWhatIsLost(t *testing.T) {
	c := Count{Published: 1200, Handled: 1187, Lost: 13, LostIDs: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}
	var b strings.Builder
	res := Result{Seed: 7, Seconds: 15.04, Drain: Drain{Seconds: 0.08, Budget: 20, Completed: 9}, Brokers: []Broker{{"rabbitmq", c}}}
	if err := res.Write(&b, nil); err != nil {
		t.Fatal(err)
	}
	want := `drained in 0.08 s of 20s: completed while draining 9, released 0, abandoned 0, unflushed 0
          published  handled  dead  redelivered  lost  settled twice  out of order
rabbitmq      1,200    1,187     0            0    13              0             0
bad rabbitmq lost: o-0 o-1 o-2 o-3 o-4 o-5 o-6 o-7 o-8 o-9 and 3 more
FAILED  1,200 orders, 15.0 s (seed 7)
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestAStopAtOnceNamesWhatItAbandons(t *testing.T) {
	l := &ledger{}
	for range 14 {
		l.add(order{})
	}
	for i := range 14 {
		l.confirm(i)
	}
	play(l, "b0 d0 b7")
	c := l.stopped(l.count())
	var b strings.Builder
	if err := (Result{Stopped: true, Brokers: []Broker{{"kafka", c}, {"sqs", Count{}}}}).Write(&b, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"these orders were abandoned:\nkafka  13 orders: o-7 o-1 o-2 o-3 o-4 o-5 o-6 o-8 o-9 o-10 and 3 more\n", "sqs  0 orders\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if c.Lost != 0 || c.Published != 14 || c.Handled != 1 {
		t.Errorf("%+v", c)
	}
}

func TestSparks(t *testing.T) {
	if got := spark([]int{0, 1, 8, 16}, 16); got != "▁▁▄█" {
		t.Errorf("%s", got)
	}
	if got := thousands(-1234567); got != "-1,234,567" {
		t.Errorf("%s", got)
	}
}

func TestTheFrameFitsTheTerminal(t *testing.T) {
	var b strings.Builder
	f := NewFrame(&b, func(_ cli.Color, s string) string { return "\x1b[31m" + s + "\x1b[0m" }, func() int { return 30 })
	f.Begin(Header{Brokers: []string{"amqptest"}})
	f.Frame(0, []Row{{Broker: "rabbitmq", State: "recovering, next try in 0.2 s", Workers: 3, Max: 16}})
	f.Event(Event{Kind: "fault", Text: strings.Repeat("x", 100)})
	for _, line := range strings.Split(strings.ReplaceAll(b.String(), "\x1b[2A\x1b[J", ""), "\n") {
		if n := len([]rune(line)) - invisible(line); n > 30 {
			t.Errorf("%d columns in %q", n, line)
		}
	}
	if !strings.Contains(b.String(), "\x1b[2A\x1b[J") {
		t.Error("the frame of two lines was not redrawn")
	}
}
