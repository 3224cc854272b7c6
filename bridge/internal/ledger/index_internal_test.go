package ledger

import "testing"

// The index forgets the oldest message, and only that.
func TestIndexForgetsTheOldest(t *testing.T) {
	x := newIndex(2)
	at := func(id string) *Record {
		return &Record{Kind: Confirmed, ID: id, Digest: [16]byte{1}, From: 1, To: 2, Pos: 7}
	}
	for _, id := range []string{"a", "b", "c"} {
		x.put(at(id))
	}
	for id, want := range map[string]Known{"a": Unknown, "b": Done, "c": Done} {
		if got := x.ask(at(id)); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	if x.put(at("a")); x.ask(at("a")) != Done || x.ask(at("b")) != Unknown || len(x.byID) != 2 {
		t.Errorf("a %v, b %v, %d known", x.ask(at("a")), x.ask(at("b")), len(x.byID))
	}
}

// Another identity with the same hash and the same contents is not taken for the first one.
func TestIndexTellsEqualContentsApart(t *testing.T) {
	x := newIndex(4)
	first := &Record{Kind: Confirmed, ID: "a", Digest: [16]byte{1}, From: 1, To: 2, Pos: 7}
	x.put(first)
	if x.bound(first.Digest, "a") == x.bound(first.Digest, "b") {
		t.Error("one digest for two identities")
	}
}
