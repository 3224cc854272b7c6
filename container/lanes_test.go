package container

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// The table against a map: same lanes, whatever comes and goes.
func TestLaneTableFindsWhatAMapFinds(t *testing.T) {
	table, model := newLaneTable(), map[string]*lane{}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 200_000 {
		key := fmt.Sprint(rnd.IntN(3000))
		if l := model[key]; l != nil && rnd.IntN(2) == 0 {
			table.drop(l)
			delete(model, key)
			continue
		}
		l, fresh := table.get([]byte(key))
		if known := model[key]; fresh != (known == nil) || known != nil && known != l || string(l.key) != key {
			t.Fatalf("key %s: fresh %v, known %v", key, fresh, known != nil)
		}
		model[key] = l
	}
	if table.n != len(model) {
		t.Fatalf("%d lanes, want %d", table.n, len(model))
	}
	n := 0
	table.each(func(*lane) { n++ })
	if n != len(model) {
		t.Fatalf("each saw %d of %d", n, len(model))
	}
}

func TestLogarithmOfALatencyIsRightToAHundredth(t *testing.T) {
	for d := time.Duration(1); d < 100*time.Hour; d += 1 + d/7 {
		if got, want := lnSeconds(d), math.Log(d.Seconds()); math.Abs(got-want) > 0.01 {
			t.Fatalf("ln %v = %.4f, want %.4f", d, got, want)
		}
	}
}

// A burst of keys does not keep its peak.
func TestLaneTableShrinks(t *testing.T) {
	table := newLaneTable()
	var lanes []*lane
	for i := range 100_000 {
		l, _ := table.get(fmt.Appendf(nil, "key-%d", i))
		lanes = append(lanes, l)
	}
	for _, l := range lanes {
		table.drop(l)
	}
	if table.n != 0 || len(table.buckets) > 1024 || table.nfree > maxFree {
		t.Errorf("%d lanes, %d buckets, %d free", table.n, len(table.buckets), table.nfree)
	}
}

func TestFreeItemsAndRingAreCapped(t *testing.T) {
	var free freeItems
	var q ring
	for range 10_000 {
		q.push(&item{})
	}
	for q.n > 0 {
		free.put(q.pop())
	}
	if free.n > maxFree || len(q.buf) > maxFree {
		t.Errorf("%d free, ring of %d", free.n, len(q.buf))
	}
}

func TestRingKeepsOrderWhileItGrowsAndIsFiltered(t *testing.T) {
	var q ring
	next, want := int64(0), int64(0)
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 10_000 {
		for range rnd.IntN(5) {
			q.push(&item{size: next})
			next++
		}
		for range min(rnd.IntN(5), q.n) {
			if got := q.pop().size; got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
			want++
		}
	}
	q.filter(func(it *item) bool { return it.size%2 == 0 })
	for last := int64(-1); q.n > 0; {
		if got := q.pop().size; got <= last || got%2 != 0 {
			t.Fatalf("%d after %d", got, last)
		} else {
			last = got
		}
	}
}

func TestParkHeapGivesTheFirstDue(t *testing.T) {
	var h parkHeap
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 5000 {
		h.push(&item{due: time.Unix(rnd.Int64N(1000), 0)})
	}
	last := time.Time{}
	for len(h) > 0 {
		it := h.pop()
		if it.due.Before(last) {
			t.Fatalf("%v after %v", it.due, last)
		}
		last = it.due
	}
	if h != nil {
		t.Error("the heap keeps its peak")
	}
}

// A loss elsewhere in the middle of a batch's verdicts mixes nothing up.
func TestFilteredLaneKnowsWhatWasPutBack(t *testing.T) {
	l := &lane{}
	l.push(&item{size: 9})
	for i := range int64(3) {
		l.insert(&item{size: i})
		l.filter(func(it *item) bool { return it.size != 1 })
	}
	for _, want := range []int64{0, 2, 9} {
		if it := l.pop(); it == nil || it.size != want {
			t.Fatalf("%+v, want %d", it, want)
		}
	}
}
