package offsets

import "testing"

// What is saved takes all the room there is and never more: a number that fits to its last
// bit is written, one that does not is not begun.
func TestNumbersTakeNoMoreThanTheirRoom(t *testing.T) {
	for room := range 40 {
		for shift := range 5 {
			for v := range uint64(64) {
				w := bitWriter{room: room, n: min(room, 3), bytes: []byte{0}}
				before, need := w.n, int(v>>shift)+1+shift //nolint:gosec // small
				wrote := w.rice(v, shift)
				if fits := before+need <= room; wrote != fits || wrote && w.n != before+need || !wrote && w.n != before {
					t.Fatalf("room %d, %d taken, %d by %d bits: written %v, %d bits then", room, before, v, shift, wrote, w.n)
				}
			}
		}
	}
}

// Runs are written up to the last byte of the room.
func TestRunsTakeNoMoreThanTheirRoom(t *testing.T) {
	runs := []span{{from: 10, to: 12, n: 2}, {from: 20, to: 25, n: 4}, {from: 30, to: 31, n: 1}} // two bytes each
	for room, want := range []int{0, 0, 2, 2, 6, 6, 7, 7} {
		body, covered := runsBody(runs, 5, room)
		if covered != want || len(body) > room {
			t.Errorf("room for %d bytes: %d written, %d records covered, want %d", room, len(body), covered, want)
		}
	}
}
