package container

import (
	"slices"
	"strings"

	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/transport"
)

// Containers can send each other their dead letters: what no handler likes would go round
// for ever, faster the more containers there are. Every move to a dead-letter destination, and
// every replay, is a hop that the message carries with it; at the limit it stays.

// HeaderDeadHops counts how often a message was moved to a dead-letter destination, or put back
// from one.
const HeaderDeadHops = hops.Header

// DeadLetterCycle returns an error if the dead letters of the containers go round, such as
// from w to d and from d back to w, over any number of containers. It sees dead letters that
// are published to the container's own broker. [lifecycle.New] asks the same.
//
// [lifecycle.New]: https://pkg.go.dev/github.com/longshore-go/longshore/lifecycle#New
func DeadLetterCycle(cs ...*ListenerContainer) error {
	routes := make([]hops.Route, 0, len(cs))
	for _, c := range cs {
		from, to := c.DeadLetterRoute()
		routes = append(routes, hops.Route{Name: c.set.name, From: from, To: to})
	}
	return hops.Cycle(routes)
}

// DeadLetterRoute returns the places that the container consumes and the place to which it
// publishes dead letters, each as one comparable text of transport, address and name. to is
// empty if the container publishes none to its own broker.
func (c *ListenerContainer) DeadLetterRoute() (from []string, to string) {
	if to = c.set.deadPlace(); to == "" {
		return nil, ""
	}
	return c.set.places(), to
}

// place is a queue or topic on a broker, as far as names tell.
func (s *settings) place(name string) string {
	return strings.Join([]string{s.about.Transport, s.about.Address, s.about.Namespace, name}, "\x00")
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
