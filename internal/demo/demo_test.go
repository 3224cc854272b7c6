package demo

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a Show that remembers.
type script struct {
	header Header
	events []Event
	rows   []Row
	ended  bool
}

func (s *script) Begin(h Header)                    { s.header = h }
func (s *script) Event(e Event)                     { s.events = append(s.events, e) }
func (s *script) Frame(_ time.Duration, rows []Row) { s.rows = rows }
func (s *script) End()                              { s.ended = true }

func (s *script) String() string {
	var b strings.Builder
	for _, e := range s.events {
		b.WriteString(eventLine(e, nil) + "\n")
	}
	return b.String()
}

func runOn(t *testing.T, broker string, d time.Duration) (Result, *script) {
	t.Helper()
	s := &script{}
	res, err := Run(context.Background(), context.Background(), Config{For: d, Seed: 7, Show: s, only: []string{broker}})
	if err != nil {
		t.Fatalf("%v\n%v", err, s)
	}
	return res, s
}

func TestNothingIsLostOnAnyEmbeddedBroker(t *testing.T) {
	for _, b := range builders() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			res, s := runOn(t, b.name, 2*time.Second)
			var text strings.Builder
			if err := res.Write(&text, nil); err != nil {
				t.Fatal(err)
			}
			c := res.Brokers[0].Count
			if !res.OK || c.Bad() || c.Left > 0 || c.Missed > 0 || c.Published != c.Handled+c.Dead {
				t.Errorf("%+v\n%v\n%v", c, s, text.String())
			}
			if c.Dead != poisonSize || c.Published < 250 {
				t.Errorf("%d dead, %d published\n%v", c.Dead, c.Published, s)
			}
			for _, kind := range []string{"burst", "poison", "throttle", "fault", "recover", "dead", "end", "drain"} {
				if kind == "recover" && (b.name == "kafka" || b.name == "sqs") {
					continue // the client connects again by itself, the group does not notice
				}
				if !strings.Contains(s.String(), " "+kind+" ") {
					t.Errorf("no event %q in\n%v", kind, s)
				}
			}
		})
	}
}

// The orders of one broker are moved to the other while they flow. Ctrl-C in the middle leaves a
// phase from which a move continues, and loses nothing.
func TestOrdersAreMovedWhileTheyFlow(t *testing.T) {
	for name, interrupt := range map[string]string{"to the end": "", "Ctrl-C": "4/6 new consumers"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			soft, stop := context.WithCancel(t.Context())
			defer stop()
			s := &script{}
			res, err := Run(soft, t.Context(), Config{For: 2 * time.Second, Seed: 11, Migrate: true, Show: stopper{s, interrupt, stop}})
			if err != nil {
				t.Fatalf("%v\n%v", err, s)
			}
			var text strings.Builder
			if err := res.Write(&text, nil); err != nil {
				t.Fatal(err)
			}
			c, m := res.Brokers[0].Count, res.Migration
			if !res.OK || c.Bad() || c.Missed > 0 || c.Published != c.Handled+c.Dead+c.Left || m.PublishedOld+m.PublishedNew != int64(c.Published) {
				t.Errorf("%+v\n%+v\n%v\n%v", c, m, s, text.String())
			}
			if interrupt != "" {
				if m.Phase != "flows" || !strings.Contains(text.String(), "interrupted in phase flows") {
					t.Errorf("%+v\n%v\n%v", m, s, text.String())
				}
				return
			}
			if m.Phase != "finished" || m.HandledOld == 0 || m.HandledNew == 0 || m.PublishedNew == 0 || m.Moved == 0 || m.DeadMoved != poisonSize || c.Dead != poisonSize || c.Left != 0 || !m.OK() {
				t.Errorf("%+v\n%v\n%v", m, s, text.String())
			}
			if m.Missing = 1; m.OK() {
				t.Error("a missing message is in order")
			}
		})
	}
}

// stopper ends a demo when an event with a text comes.
type stopper struct {
	*script
	at   string
	stop func()
}

func (s stopper) Event(e Event) {
	s.script.Event(e)
	if s.at != "" && strings.Contains(e.Text, s.at) {
		s.stop()
	}
}
