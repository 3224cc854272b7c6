package memory

import (
	"math/rand/v2"
	"testing"

	"github.com/longshore-go/longshore"
)

// A token names its message until the slot is freed, and never a later one in it.
func TestATokenNeverNamesALaterMessage(t *testing.T) {
	var h inflight
	first := &entry{seq: 1}
	idx := h.add(first)
	token := h.at(idx).token(idx)
	if i, s := h.find(token); s == nil || i != idx || s.e != first {
		t.Fatalf("not found: slot %d, %v", i, s)
	}
	h.remove(idx)
	if again := h.add(&entry{seq: 2}); again != idx {
		t.Fatalf("slot %d was not used again, but %d", idx, again)
	}
	if _, s := h.find(token); s != nil {
		t.Errorf("a used-up token finds message %d", s.e.seq)
	}
	if _, s := h.find(uint64(7)); s != nil {
		t.Error("a token of a slot that does not exist finds a message")
	}
}

// Random adds, hand-outs and removals: the count is right, the buffer keeps the order of
// arrival, and nothing is found that was removed.
func TestInflightAgainstAModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var h inflight
		var buffered, out []uint32 // the model
		seq := uint64(0)
		for range 300 {
			switch op := r.IntN(5); {
			case op < 2:
				seq++
				buffered = append(buffered, h.add(&entry{seq: seq}))
			case op == 2 && len(buffered) > 0:
				idx := h.buffer.pop()
				if idx != buffered[0] {
					t.Fatalf("seed %d: slot %d is handed out, want %d", seed, idx, buffered[0])
				}
				h.at(idx).d = &longshore.Delivery{}
				buffered, out = buffered[1:], append(out, idx)
			case op == 3 && len(out) > 0:
				i := r.IntN(len(out))
				token := h.at(out[i]).token(out[i])
				if e, d := h.remove(out[i]); e == nil || d == nil {
					t.Fatalf("seed %d: removed %v, %v", seed, e, d)
				}
				if _, s := h.find(token); s != nil {
					t.Fatalf("seed %d: found after its removal", seed)
				}
				out = append(out[:i], out[i+1:]...)
			case op == 4 && len(buffered) > 0: // its lease ended before it was handed out
				i := r.IntN(len(buffered))
				if _, d := h.remove(buffered[i]); d != nil {
					t.Fatalf("seed %d: a buffered message has a delivery", seed)
				}
				buffered = append(buffered[:i], buffered[i+1:]...)
			}
			if h.count != len(buffered)+len(out) || h.buffer.len() != len(buffered) {
				t.Fatalf("seed %d: holds %d, buffers %d; want %d and %d", seed, h.count, h.buffer.len(), len(buffered)+len(out), len(buffered))
			}
		}
		last := uint64(0)
		for _, e := range h.takeBuffer() {
			if e.seq <= last {
				t.Fatalf("seed %d: %d after %d", seed, e.seq, last)
			}
			last = e.seq
		}
		n := 0
		h.takeAll(func(*entry, *longshore.Delivery) { n++ })
		if n != len(out) || h.count != 0 || len(h.unsettled()) != 0 {
			t.Fatalf("seed %d: %d taken at the end, want %d; %d left", seed, n, len(out), h.count)
		}
	}
}

// Consumers with room take turns; the active one of a single-active queue is the first
// that wants messages.
func TestRosterTakesTurns(t *testing.T) {
	a, b, c := &consumer{window: 1}, &consumer{window: 1}, &consumer{window: 1}
	var r roster
	if r.inTurn() != nil || r.active() != nil {
		t.Fatal("an empty roster has someone")
	}
	r.add(a)
	r.add(b)
	r.add(c)
	for i, want := range []*consumer{a, b, c, a, b} {
		if got := r.inTurn(); got != want {
			t.Errorf("turn %d went to another", i)
		}
	}
	b.held.count = 1 // full
	for i, want := range []*consumer{c, a, c} {
		if got := r.inTurn(); got != want {
			t.Errorf("with one full, turn %d went to another", i)
		}
	}
	a.idle = true
	if r.active() != b {
		t.Error("an idle consumer has the role, or a full one has not")
	}
	a.idle = false
	r.moveToEnd(a)
	if r.active() != b || r.all[2] != a {
		t.Error("the consumer that resumed did not join last")
	}
	b.canceled = true
	if r.active() != c {
		t.Error("a cancelled consumer has the role")
	}
	r.exclusive = true
	r.remove(a)
	r.remove(b)
	if !r.exclusive {
		t.Error("the exclusive consumer is still there")
	}
	if r.remove(c); r.exclusive || r.active() != nil {
		t.Error("an empty roster is exclusive, or has an active consumer")
	}
}
