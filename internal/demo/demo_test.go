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
