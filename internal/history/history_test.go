package history

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
)

func TestBounded(t *testing.T) {
	if n := unsafe.Sizeof(History{}) + Marks*longestReason; n > 128<<10 {
		t.Fatalf("a container's past takes %d bytes", n)
	}
	var h History
	at := time.Unix(1_700_000_000, 0)
	for i := range 2 * Points {
		h.Add(at.Add(time.Duration(i)*time.Second), &container.Stats{Received: int64(i)})
		h.Mark(Mark{At: at.Add(time.Duration(i) * time.Second), From: i, To: i + 1, Reason: string(make([]byte, 1000))})
	}
	s := h.Last(at.Add(2*Points*time.Second), Points)
	if len(s.At) != Points-1 || len(s.Scaled) != Marks || len(s.Scaled[0].Reason) > longestReason {
		t.Fatalf("%d points, %d marks of %d bytes", len(s.At), len(s.Scaled), len(s.Scaled[0].Reason))
	}
}

func TestRates(t *testing.T) {
	var h History
	at := time.Unix(1_700_000_000, 0)
	run := at
	add := func(after time.Duration, received, acked int64) (Point, bool) {
		return h.Add(at.Add(after), &container.Stats{Since: run, State: container.StateRunning, Received: received, Acked: acked, Workers: 3, Permits: -1,
			Backlog: 7, BacklogAt: at, DeadLetters: map[longshore.Code]int64{longshore.CodeHandler: acked / 10}})
	}
	if _, ok := add(0, 100, 100); ok {
		t.Fatal("a point without one before it")
	}
	p, ok := add(2*time.Second, 300, 200)
	if !ok || p.In != 100 || p.Done != 50 || p.Dead != 5 || *p.Backlog != 7 || p.Permits != -1 || p.State != container.StateRunning {
		t.Fatalf("%+v", p)
	}
	if _, ok := add(2*time.Second+time.Millisecond, 301, 200); ok {
		t.Fatal("two points in one second")
	}
	run = at.Add(3 * time.Second) // a new run
	if p, _ = add(4*time.Second, 10, 10); p.In < 4 || p.In > 6 {
		t.Fatalf("a new run counts from 0: %v", p.In)
	}
	if _, ok := add(30*time.Second, 1000, 1000); ok {
		t.Fatal("what happened in a gap was counted for one second")
	}
	s := h.Last(at.Add(31*time.Second), 60)
	if len(s.At) != 2 || len(s.In) != 2 || len(s.State) != 2 {
		t.Fatalf("%+v", s)
	}
	if s = h.Last(at.Add(31*time.Second), 28); len(s.At) != 1 {
		t.Fatalf("28 s have %d points", len(s.At))
	}
}

func TestHourAgo(t *testing.T) {
	var h History
	at := time.Unix(1_700_000_000, 0)
	for i := range 61*60 + 2 {
		h.Add(at.Add(time.Duration(i)*time.Second), &container.Stats{Handler: container.Calls{P50: time.Duration(i) * time.Second}})
	}
	s := h.Last(at.Add(61*time.Minute), 1)
	if s.HourAgo == nil || s.HourAgo.P50 > 180 || s.HourAgo.P50 < 60 {
		t.Fatalf("an hour ago: %+v", s.HourAgo)
	}
}

// A reason is cut between two characters: half of one would not be JSON.
func TestReasonIsCutBetweenCharacters(t *testing.T) {
	var h History
	at := time.Unix(1_700_000_000, 0)
	h.Mark(Mark{At: at, Reason: strings.Repeat("x", longestReason-1) + "→ more"})
	if got := h.Last(at, 60).Scaled[0].Reason; got != strings.Repeat("x", longestReason-1) {
		t.Fatalf("%q", got)
	}
}
