package container

import (
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
)

const (
	// repeatEvery is how often the same code is logged by one container: an outage
	// must not fill a disk.
	repeatEvery = time.Minute
	// repeatIDs bounds the messages that the line of repeats names.
	repeatIDs = 10
)

// repeats holds back events of a kind and code that were logged within the last
// minute. Every one of them is counted in a line that follows: after the minute,
// when the container has drained, or when its run ends.
type repeats struct {
	clock longshore.Clock // so that tests decide about time
	wake  func()          // take has something to give; set before the first event

	mu    sync.Mutex         // guards what follows
	seen  map[string]*repeat // what was logged in the last minute, by kind and code
	timer longshore.Timer    // until the first of them is due; nil: none is held back
	due   bool               // the timer has fired
}

// repeat is one kind and code.
type repeat struct {
	since time.Time // of the last line
	held  int       // events since then
	event Event     // the last of them
	about string    // the condition that it reports; "": none
	ids   []string  // of the first messages among them
}

func newRepeats(clock longshore.Clock) *repeats {
	return &repeats{clock: clock, wake: func() {}, seen: map[string]*repeat{}}
}

func newRepeat(e Event) *repeat {
	about, _ := alarmOf(e)
	return &repeat{since: e.Time, about: about}
}

// repeatKey tells what counts as the same.
func repeatKey(e Event) string {
	key := string(e.Kind) + " " + string(longshore.CodeOf(e.Err))
	switch {
	case e.Condition != "":
		key += " " + e.Condition
	case e.Kind == EventNotice:
		key += " " + e.Text
	case e.Kind == EventDown && e.Attempt > 0: // not opened, which is not the same as lost
		key += " attempt"
	}
	return key
}

// note counts an event. alone says that it is to be written as it is; due is what
// was held back, with it, and is to be written instead.
func (r *repeats) note(e Event) (alone bool, due *repeat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := repeatKey(e)
	s := r.seen[key]
	switch {
	case s == nil:
		r.seen[key] = newRepeat(e)
		return true, nil
	case e.Time.Sub(s.since) < repeatEvery:
		s.hold(e, 1)
		r.arm()
		return false, nil
	}
	r.seen[key] = newRepeat(e)
	if s.held == 0 {
		return true, nil
	}
	s.hold(e, 1)
	return false, s
}

// add counts events that found no room anywhere.
func (r *repeats) add(e Event, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := repeatKey(e)
	s := r.seen[key]
	if s == nil {
		s = newRepeat(e)
		r.seen[key] = s
	}
	s.hold(e, n)
	r.arm()
}

func (s *repeat) hold(e Event, n int) {
	s.held += n
	s.event = e
	if e.Delivery != nil && len(s.ids) < repeatIDs && !slices.Contains(s.ids, e.Delivery.MessageID) {
		s.ids = append(s.ids, e.Delivery.MessageID)
	}
}

// flush returns what was held back about a condition, except its ends.
func (r *repeats) flush(condition string) (out []*repeat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.seen {
		if s.held > 0 && s.about == condition && s.event.Kind != EventUnstuck {
			out = append(out, s)
			r.seen[key] = &repeat{since: r.clock.Now(), about: condition}
		}
	}
	return out
}

// forget drops what was held back about a condition that is over, and returns how many
// lines that were. With again the next report of it is written at once; otherwise the minute
// since the last one counts on, so that a condition that comes and goes fills no disk.
func (r *repeats) forget(condition string, again bool) (held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.seen {
		if s.about != condition {
			continue
		}
		held += s.held
		if again {
			delete(r.seen, key)
		} else {
			r.seen[key] = &repeat{since: s.since, about: condition}
		}
	}
	return held
}

// take returns what was held back long enough, or all, and forgets what is old.
func (r *repeats) take(all bool) []*repeat {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !all && !r.due {
		return nil
	}
	r.due = false
	now := r.clock.Now()
	var out []*repeat
	for key, s := range r.seen {
		old := now.Sub(s.since) >= repeatEvery
		switch {
		case s.held > 0 && (old || all):
			out = append(out, s)
			r.seen[key] = &repeat{since: now, about: s.about}
		case old:
			delete(r.seen, key)
		}
	}
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	for _, s := range r.seen {
		if s.held > 0 {
			r.arm()
			break
		}
	}
	return out
}

// arm wakes whoever takes once the first is due. The caller holds mu.
func (r *repeats) arm() {
	if r.timer != nil {
		return
	}
	first := r.clock.Now().Add(repeatEvery)
	for _, s := range r.seen {
		if due := s.since.Add(repeatEvery); s.held > 0 && due.Before(first) {
			first = due
		}
	}
	r.timer = r.clock.AfterFunc(max(first.Sub(r.clock.Now()), time.Millisecond), r.fire)
}

func (r *repeats) fire() {
	r.mu.Lock()
	r.due = true
	r.mu.Unlock()
	r.wake()
}
