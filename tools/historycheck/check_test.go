package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/history"
)

var all = rules{ordered: true, left: true, effects: true, stall: 30 * time.Second, grace: 2 * time.Second}

const second = int64(time.Second)

// good is a history that breaks nothing: 12 messages of two keys, done by two processes one
// after the other, with a kill, a frozen process, a minority, a failed run and a drain.
func good() []history.Event {
	var h []history.Event
	at := int64(0)
	add := func(process string, e history.Event) {
		at += second / 10
		e.At, e.Process = at, process
		h = append(h, e)
	}
	one := func(process string, n int) {
		id, key, seq := fmt.Sprintf("m%d", n), fmt.Sprintf("k%d", n%2), int64(n/2+1)
		add("producer", history.Event{Kind: history.Published, ID: id, Key: key, Seq: seq})
		add("producer", history.Event{Kind: history.Confirmed, ID: id})
		add(process, history.Event{Kind: history.Started, ID: id, Key: key, Seq: seq, Run: int64(n)})
		add(process, history.Event{Kind: history.Done, ID: id, Run: int64(n)})
	}
	for n := range 4 {
		one("a", n)
	}
	// a is killed in the middle of m4; b does it again.
	add("producer", history.Event{Kind: history.Published, ID: "m4", Key: "k0", Seq: 3})
	add("producer", history.Event{Kind: history.Confirmed, ID: "m4"})
	add("a", history.Event{Kind: history.Started, ID: "m4", Key: "k0", Seq: 3, Run: 4})
	add("nemesis", history.Event{Kind: history.Killed, Of: "a"})
	add("b", history.Event{Kind: history.Started, ID: "m4", Key: "k0", Seq: 3, Run: 1})
	add("b", history.Event{Kind: history.Done, ID: "m4", Run: 1})
	// b is frozen in the middle of m5; c does it, and b ends it late.
	add("producer", history.Event{Kind: history.Published, ID: "m5", Key: "k1", Seq: 3})
	add("producer", history.Event{Kind: history.Confirmed, ID: "m5"})
	add("b", history.Event{Kind: history.Started, ID: "m5", Key: "k1", Seq: 3, Run: 2})
	add("nemesis", history.Event{Kind: history.Frozen, Of: "b"})
	add("c", history.Event{Kind: history.Started, ID: "m5", Key: "k1", Seq: 3, Run: 1})
	add("nemesis", history.Event{Kind: history.Thawed, Of: "b"})
	add("b", history.Event{Kind: history.Canceled, Run: 2})
	add("b", history.Event{Kind: history.Failed, ID: "m5", Run: 2})
	add("c", history.Event{Kind: history.Done, ID: "m5", Run: 1})
	// For a minute no majority answers, and nothing starts.
	add("producer", history.Event{Kind: history.Published, ID: "m6", Key: "k0", Seq: 4})
	add("producer", history.Event{Kind: history.Confirmed, ID: "m6"})
	add("nemesis", history.Event{Kind: history.Fault, Text: "two nodes killed"})
	at += 60 * second
	add("nemesis", history.Event{Kind: history.Healed})
	add("c", history.Event{Kind: history.Started, ID: "m6", Key: "k0", Seq: 4, Run: 2})
	add("c", history.Event{Kind: history.Done, ID: "m6", Run: 2})
	for n := 7; n < 12; n++ {
		one("c", n)
	}
	// Nobody knows of m12; m13 is dead, m14 is still there.
	add("producer", history.Event{Kind: history.Published, ID: "m12", Key: "k0", Seq: 7})
	add("producer", history.Event{Kind: history.Unconfirmed, ID: "m12"})
	for _, id := range []string{"m13", "m14"} {
		add("producer", history.Event{Kind: history.Published, ID: id, Key: "k0", Seq: 8})
		add("producer", history.Event{Kind: history.Confirmed, ID: id})
	}
	add("c", history.Event{Kind: history.Draining, N: 1000})
	add("c", history.Event{Kind: history.Drained})
	add("end", history.Event{Kind: history.Dead, ID: "m13"})
	add("end", history.Event{Kind: history.Left, ID: "m14"})
	for n := range 12 {
		add("end", history.Event{Kind: history.Effects, ID: fmt.Sprintf("m%d", n), N: 1})
	}
	return h
}

// at finds an event.
func at(t *testing.T, h []history.Event, kind history.Kind, id string) int {
	t.Helper()
	i := slices.IndexFunc(h, func(e history.Event) bool { return e.Kind == kind && e.ID == id })
	if i < 0 {
		t.Fatalf("no %s of %s", kind, id)
	}
	return i
}

func TestGoodHistoryBreaksNothing(t *testing.T) {
	t.Parallel()
	if found := check(good(), all); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// A process is frozen a moment after that was written down: what it starts in between could not
// be told either, and what it starts later could.
func TestStartBetweenTheWordAndTheFreeze(t *testing.T) {
	t.Parallel()
	for late, want := range map[int64]int{2 * int64(time.Millisecond): 0, 80 * int64(time.Millisecond): 1} {
		h := good()
		frozen := slices.IndexFunc(h, func(e history.Event) bool { return e.Kind == history.Frozen })
		started := h[frozen-1]
		started.At = h[frozen].At + late
		h[frozen-1], h[frozen] = h[frozen], started
		if found := check(h, all); len(found) != want || want > 0 && found[0].Rule != "overlap" {
			t.Errorf("started %s after the freeze: found %+v", time.Duration(late), found)
		}
	}
}

// The checker names each of sixteen faults that are put into a good history.
func TestPlantedFaultsAreNamed(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]struct {
		rule string
		put  func(h []history.Event) []history.Event
	}{
		"a message is lost": {"lost", func(h []history.Event) []history.Event {
			return without(h, func(e history.Event) bool {
				return e.ID == "m9" && e.Kind != history.Published && e.Kind != history.Confirmed
			})
		}},
		"a killed process's message does not come again": {"lost", func(h []history.Event) []history.Event {
			return without(h, func(e history.Event) bool { return e.Process == "b" && (e.ID == "m4" || e.Run == 1) })
		}},
		"a dead letter vanishes": {"lost", func(h []history.Event) []history.Event {
			return without(h, func(e history.Event) bool { return e.Kind == history.Dead })
		}},
		"two messages of a key change places": {"order", func(h []history.Event) []history.Event {
			first, second := h[at(t, h, history.Published, "m8")].Seq, h[at(t, h, history.Published, "m10")].Seq
			for i, e := range h {
				switch {
				case e.Seq != 0 && e.ID == "m8":
					h[i].Seq = second
				case e.Seq != 0 && e.ID == "m10":
					h[i].Seq = first
				}
			}
			return h
		}},
		"two handlers of a key run at once": {"overlap", func(h []history.Event) []history.Event {
			return without(h, func(e history.Event) bool { return e.Kind == history.Frozen })
		}},
		"a context ends only after the next has started": {"overlap", func(h []history.Event) []history.Event {
			frozen := slices.IndexFunc(h, func(e history.Event) bool { return e.Kind == history.Frozen })
			h[frozen].Kind, h[frozen].Process, h[frozen].Run = history.Canceled, "b", 2
			h[frozen].At = h[at(t, h, history.Done, "m5")].At - 1
			slices.SortStableFunc(h, func(a, b history.Event) int { return int(min(max(a.At-b.At, -1), 1)) })
			return h
		}},
		"an effect is there twice": {"effects", func(h []history.Event) []history.Event {
			h[at(t, h, history.Effects, "m4")].N = 2
			return h
		}},
		"an effect is missing": {"effects", func(h []history.Event) []history.Event {
			h[at(t, h, history.Effects, "m7")].N = 0
			return h
		}},
		"nothing starts although a majority answers": {"stall", func(h []history.Event) []history.Event {
			i := slices.IndexFunc(h, func(e history.Event) bool { return e.Kind == history.Fault })
			h[i].N = 1
			return h
		}},
		"nothing starts after all is healed": {"stall", func(h []history.Event) []history.Event {
			i := slices.IndexFunc(h, func(e history.Event) bool { return e.Kind == history.Healed })
			for j := i + 1; j < len(h); j++ {
				h[j].At += 40 * second
			}
			return h
		}},
		"a drain does not end": {"drain", func(h []history.Event) []history.Event {
			return without(h, func(e history.Event) bool { return e.Kind == history.Drained })
		}},
		"a drain takes too long": {"drain", func(h []history.Event) []history.Event {
			h[slices.IndexFunc(h, func(e history.Event) bool { return e.Kind == history.Drained })].At += 5 * second
			return h
		}},
		"a message overtakes one that has failed": {"order", func(h []history.Event) []history.Event {
			i := at(t, h, history.Done, "m9") // number 5 of its key; number 6 starts while it waits for its next attempt
			h[i].Kind = history.Failed
			last := at(t, h, history.Draining, "")
			return slices.Insert(h, last, history.Event{At: h[last].At - 2, Process: "c", Kind: history.Started, ID: "m9", Key: "k1", Seq: 5, Run: 90},
				history.Event{At: h[last].At - 1, Process: "c", Kind: history.Done, ID: "m9", Run: 90})
		}},
		"a message that is left was overtaken": {"order", func(h []history.Event) []history.Event {
			h = without(h, func(e history.Event) bool {
				return e.ID == "m9" && e.Kind != history.Published && e.Kind != history.Confirmed
			})
			return append(h, history.Event{At: h[len(h)-1].At + 1, Process: "end", Kind: history.Left, ID: "m9"})
		}},
		"a message comes out of nothing": {"unknown", func(h []history.Event) []history.Event {
			return append(h, history.Event{At: h[len(h)-1].At + 1, Process: "c", Kind: history.Started, ID: "m99", Key: "k1", Seq: 50, Run: 99})
		}},
		"a message arrives with another key": {"changed", func(h []history.Event) []history.Event {
			h[at(t, h, history.Started, "m9")].Key = "k7"
			return h
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := check(plant.put(good()), all)
			if !slices.ContainsFunc(found, func(v violation) bool { return v.Rule == plant.rule }) {
				t.Errorf("not named %q: found %+v", plant.rule, found)
			}
			for _, v := range found {
				// What is lost was also overtaken by the messages behind it.
				if v.Rule != plant.rule && (plant.rule != "lost" || v.Rule != "order") {
					t.Errorf("also found %+v", v)
				}
			}
		})
	}
}

func without(h []history.Event, f func(history.Event) bool) []history.Event {
	return slices.DeleteFunc(h, f)
}

// What a fault costs is counted until the next begins.
func TestCostsOfFaults(t *testing.T) {
	t.Parallel()
	h := good()
	first := slices.IndexFunc(h, func(e history.Event) bool { return e.Kind == history.Killed })
	h = slices.Insert(h, first, history.Event{At: h[first].At - 1, Kind: history.Fault, Text: "a consumer is killed", N: 1})
	got := costs(h)
	if len(got) != 2 || got[0].repeats != 2 || got[0].canceled != 1 || got[1].gap < 60*time.Second || got[1].repeats != 0 {
		t.Errorf("got %+v", got)
	}
}

// What is left breaks a promise where everything was waited for, and a history in which
// nothing happened shows nothing.
func TestLeftAndEmpty(t *testing.T) {
	t.Parallel()
	strict := all
	strict.left = false
	if found := check(good(), strict); len(found) != 1 || found[0].Rule != "left" {
		t.Errorf("left: found %+v", found)
	}
	for name, h := range map[string][]history.Event{
		"nothing":    nil,
		"no effects": without(good(), func(e history.Event) bool { return e.Kind == history.Effects }),
	} {
		if found := check(h, all); len(found) != 1 || found[0].Rule != "empty" {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}
