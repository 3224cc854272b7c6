package amqp

import (
	"math/rand/v2"
	"testing"

	"github.com/longshore-go/longshore"
)

// ackBroker is the broker's side of tags: it closes a channel over a multiple
// that names a tag which is not outstanding.
type ackBroker struct {
	t    *testing.T
	out  map[uint64]bool
	done map[uint64]string
}

func (b *ackBroker) settle(tag uint64, how string) {
	if !b.out[tag] {
		b.t.Fatalf("406: tag %d is unknown", tag)
	}
	delete(b.out, tag)
	b.done[tag] = how
}

func (b *ackBroker) apply(s *batch) {
	for _, x := range s.alone {
		b.settle(x.tag, "alone")
	}
	if s.upTo > 0 {
		if !b.out[s.upTo] {
			b.t.Fatalf("406: multiple names %d, which is not outstanding", s.upTo)
		}
		for tag := range b.out {
			if tag < s.upTo && s.multiple {
				b.settle(tag, "ack")
			}
		}
		b.settle(s.upTo, "ack")
	}
	for _, tag := range s.islands {
		b.settle(tag, "ack")
	}
}

// Random arrivals over several consumers, random settlements, random passes:
// exactly what was settled is settled at the broker, in the form that was asked.
func TestTagsSettleExactlyWhatWasSettled(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		b := &ackBroker{t: t, out: map[uint64]bool{}, done: map[uint64]string{}}
		ring, pass := newTags(), &batch{}
		want := map[uint64]string{}
		var open []uint64
		sent := uint64(0)
		for range 2000 {
			switch k := r.IntN(10); {
			case k < 4 && len(open) < 200:
				n := 1 + r.IntN(4)
				for _, i := range r.Perm(n) { // a little out of order, as from several consumers
					tag := sent + uint64(i) + 1
					b.out[tag] = true
					ring.arrive(tag, longshore.NewDelivery(t.Context(), nil, tag))
					open = append(open, tag)
				}
				sent += uint64(n)
			case k < 8 && len(open) > 0:
				i := r.IntN(min(len(open), 1+r.IntN(len(open))))
				tag := open[i]
				open = append(open[:i], open[i+1:]...)
				if r.IntN(10) == 0 {
					want[tag] = "alone"
					ring.accept(tag, ring.find(tag), longshore.Settlement{}, howNack)
				} else {
					want[tag] = "ack"
					ring.accept(tag, ring.find(tag), longshore.Settlement{}, howAck)
				}
			default:
				ring.collect(pass, r.IntN(3) == 0, false)
				b.apply(pass)
			}
		}
		ring.collect(pass, true, false)
		b.apply(pass)
		for tag, how := range want {
			if b.done[tag] != how {
				t.Fatalf("seed %d: tag %d is %q at the broker, want %q", seed, tag, b.done[tag], how)
			}
		}
		if len(b.done) != len(want) || len(pass.sent) != len(want) || ring.open != len(open) || ring.unsent != 0 {
			t.Fatalf("seed %d: %d settled, %d remembered, want %d; open %d want %d, unsent %d", seed, len(b.done), len(pass.sent), len(want), ring.open, len(open), ring.unsent)
		}
	}
}

// A slow head does not keep what was done above it unsent.
func TestAcksAboveASlowDeliveryAreSent(t *testing.T) {
	ring, pass := newTags(), &batch{}
	for tag := uint64(1); tag <= 100; tag++ {
		ring.arrive(tag, nil)
		if tag > 1 {
			ring.accept(tag, ring.find(tag), longshore.Settlement{}, howAck)
		}
	}
	ring.collect(pass, false, false)
	first := len(pass.islands)
	ring.collect(pass, false, false)
	if pass.upTo != 0 || first != 0 || len(pass.islands) != 99 || len(ring.ring) < 100 {
		t.Errorf("upTo %d, islands %d then %d, ring of %d", pass.upTo, first, len(pass.islands), len(ring.ring))
	}
	ring.accept(1, ring.find(1), longshore.Settlement{}, howAck)
	ring.collect(pass, false, false)
	if pass.upTo != 1 || pass.multiple || ring.base != 101 {
		t.Errorf("then upTo %d multiple %v base %d", pass.upTo, pass.multiple, ring.base)
	}
}

// Deliveries are handed out in the order of their tags, whichever consumer was
// quicker.
func TestTagsAreHandedOutInOrder(t *testing.T) {
	ring := newTags()
	ring.arrive(2, longshore.NewDelivery(t.Context(), nil, 2))
	if got := ring.take(nil, 5); len(got) != 0 {
		t.Fatalf("tag 2 was handed out before tag 1")
	}
	ring.arrive(1, longshore.NewDelivery(t.Context(), nil, 1))
	got := ring.take(nil, 5)
	if len(got) != 2 || got[0].Token() != 1 || got[1].Token() != 2 {
		t.Errorf("handed out %v", got)
	}
}
