package container

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/transport"
)

// Containers can send each other their dead letters: what no handler likes would go round
// for ever, faster the more containers there are. Every move to a dead-letter place, and
// every replay, is a hop that the message carries with it; at the limit it stays.

// HeaderDeadHops counts how often a message was moved to a dead-letter place, or put back
// from one.
const HeaderDeadHops = hops.Header

// hopped refuses the move of a message that has made too many; nil if it has not.
func (r *engine) hopped(d *longshore.Delivery) error {
	return hops.Check(d.Received().Headers, r.s.hops, "DeadLetter.MaxHops")
}

// DeadLetterCycle finds containers whose dead letters go round: w to d and d to w, over any number
// of them. It sees those that publish to their own broker. nil if there is none.
func DeadLetterCycle(cs ...*ListenerContainer) error {
	next := map[string]string{} // source to destination
	names := map[string]string{}
	for _, c := range cs {
		to := c.set.deadPlace()
		if to == "" {
			continue
		}
		for _, from := range c.set.places() {
			next[from], names[from] = to, c.set.name
		}
	}
	for _, start := range slices.Sorted(maps.Keys(next)) {
		path := []string{names[start]}
		for at := next[start]; ; at = next[at] {
			if at == start {
				return &longshore.Error{Code: longshore.CodeConfig, Op: "dead letters of containers",
					Err:  fmt.Errorf("they go round: %s and back to its source", strings.Join(path, " → ")),
					Hint: "let the last one keep, discard, or send its dead letters to a place that no container consumes"}
			}
			if _, ok := next[at]; !ok || len(path) > len(next) {
				break
			}
			path = append(path, names[at])
		}
	}
	return nil
}

// place is a queue or topic on a broker, as far as names tell.
func (s *settings) place(name string) string {
	return strings.Join([]string{s.about.Transport, s.about.Address, name}, "\x00")
}

// places are what the container consumes.
func (s *settings) places() []string {
	if s.about.Kind == "broadcast" {
		return nil
	}
	names := strings.Split(s.about.Name, ",")
	for i, n := range names {
		names[i] = s.place(n)
	}
	return names
}

// deadPlace is where its dead letters go, "" where that is another broker or none of ours.
func (s *settings) deadPlace() string {
	if s.dead.To == "" || s.dead.Via != nil {
		return ""
	}
	return s.place(s.dead.To)
}

// ownSource says that the dead letters would come back to the container itself.
func (s *settings) ownSource(src transport.Source) bool {
	_, known := src.(transport.Describer)
	return known && s.deadPlace() != "" && slices.Contains(s.places(), s.deadPlace())
}
