package breaker

import (
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/longshore-go/longshore"
)

// errYields is the cause of a release that lets another message be the trial.
var errYields = errors.New("its last trial failed: another message is tried first")

// maxSuspects bounds the memory of failed trials.
const maxSuspects = 1024

// suspects are messages whose trial failed. One that fails for its own fault must not
// be the only trial there ever is: so in each half-open phase a suspect steps back
// once, and what waits behind it is tried. Only if nothing does it comes again.
type suspects struct {
	round   uint64            // counts half-open phases
	yielded map[string]uint64 // by id: the round in which it stepped back last
	oldest  []string          // the ids, in the order in which they came
}

// add remembers messages whose trial failed.
func (s *suspects) add(ds []*longshore.Delivery) {
	for _, d := range ds {
		id := suspectID(d)
		if _, known := s.yielded[id]; known || id == "" {
			continue
		}
		if len(s.oldest) == maxSuspects {
			delete(s.yielded, s.oldest[0])
			s.oldest = append(s.oldest[:0], s.oldest[1:]...)
		}
		if s.yielded == nil {
			s.yielded = map[string]uint64{}
		}
		s.yielded[id] = s.round
		s.oldest = append(s.oldest, id)
	}
}

// yields notes which of them step back now.
func (s *suspects) yields(ds []*longshore.Delivery) (back []bool) {
	if len(s.yielded) == 0 {
		return nil
	}
	for i, d := range ds {
		id := suspectID(d)
		if last, known := s.yielded[id]; !known || last == s.round {
			continue
		}
		s.yielded[id] = s.round
		if back == nil {
			back = make([]bool, len(ds))
		}
		back[i] = true
	}
	return back
}

// suspectID is what a message is known by when it comes again. Where the producer set
// no id its body serves: of two that are equal both step back, which costs a moment.
func suspectID(d *longshore.Delivery) string {
	if id := longshore.Identity(d); id != "" {
		return "id:" + id
	}
	body := d.Received().Body
	if len(body) == 0 {
		return ""
	}
	h := fnv.New64a()
	_, _ = h.Write(body)
	return "body:" + strconv.FormatUint(h.Sum64(), 16)
}

// yield releases suspects in a trial; nil: these may be the trial. Of a batch the
// others go back for a moment only, and come again without them.
func (b *Breaker) yield(ds []*longshore.Delivery) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != Trial {
		return nil
	}
	back := b.suspects.yields(ds)
	if back == nil {
		return nil
	}
	// Others must have the time to come, over a subscription that is new: half of what
	// it was open for, which grows until it is enough.
	pause := max(b.openedFor/2, time.Second)
	if len(ds) == 1 {
		return longshore.Release(errYields, pause)
	}
	each := longshore.BatchError{}
	for i := range ds {
		if back[i] {
			each[i] = longshore.Release(errYields, pause)
		} else {
			each[i] = longshore.Release(errYields, time.Millisecond)
		}
	}
	return each
}
