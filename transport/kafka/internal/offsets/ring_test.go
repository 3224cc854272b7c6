package offsets

import "testing"

// A ring that a stuck record has made large is given back when all is done, and the
// tracker goes on.
func TestLargeRingIsGivenBack(t *testing.T) {
	t.Parallel()
	tr := New(0, -1)
	for round := range int64(2) {
		for i := range int64(3 * maxIdleRing) {
			tr.Add(round*3*maxIdleRing+i, 0, nil)
		}
		for seq := tr.tail - 1; seq > tr.head; seq-- {
			tr.Ack(seq)
		}
		if tr.Len() != 3*maxIdleRing || len(tr.offsets) < 3*maxIdleRing {
			t.Fatalf("%d in a ring of %d before the head is done", tr.Len(), len(tr.offsets))
		}
		tr.Ack(tr.head)
		if tr.base != (round+1)*3*maxIdleRing || len(tr.offsets) != 0 {
			t.Fatalf("watermark %d, ring of %d, want %d and none", tr.base, len(tr.offsets), (round+1)*3*maxIdleRing)
		}
	}
}
