package amqp

import (
	"fmt"
	"math"

	"github.com/longshore-go/longshore/transport"
)

// A quorum queue lines returned messages up in the order in which they are returned,
// behind those that were returned before and not sent since. So the order survives a
// second hand-over only if the second holder had all of the first one's returns in hand,
// which it has if its prefetch is not smaller. A prefetch that follows the workers
// differs between instances; an ordered consumer therefore uses the same one everywhere.

// orderedWindows are the sizes that an ordered consumer of a queue chooses from. Nearly
// all take the first. Few sizes mean that instances which need more agree as well.
func orderedWindows() [5]int {
	return [...]int{defaultWindow, 1000, 4000, 16000, math.MaxUint16}
}

// orderedWindow is the prefetch of an ordered consumer on each of so many queues, whose
// container holds at most so many deliveries.
func orderedWindow(most, queues int) int {
	share := (most + max(queues, 1) - 1) / max(queues, 1)
	for _, size := range orderedWindows() {
		if share <= size {
			return size
		}
	}
	return math.MaxUint16
}

// linesUp reports whether the source may be a quorum queue that has to return messages in
// their order: where the type is not declared it may be.
func (s *Queue) linesUp(o transport.OpenOptions) bool {
	return o.Ordered && s.cast == nil && !s.config().stream() && s.cfg.Declare.Type != Classic && !s.cfg.AutoAck
}

// fixesWindow reports whether this opening uses the window that all instances share.
func (s *Queue) fixesWindow(o transport.OpenOptions) bool {
	return s.linesUp(o) && s.cfg.Prefetch == 0 && !s.cfg.Pull && !s.slow.Load()
}

// keptWhile is how a notice begins that limits the promise.
const keptWhile = "%s keeps the order of a key over several hand-overs only while "

// orderNotice says over which hand-overs the order is kept; "" is all of them.
func (s *Queue) orderNotice(o transport.OpenOptions) string {
	if !s.linesUp(o) {
		return ""
	}
	kept := fmt.Sprintf(keptWhile, s.title())
	size := orderedWindow(o.MaxWindow, len(s.queues))
	switch {
	case s.cfg.Pull:
		return kept + "each consumer fetches at least as many messages as the one before it left unsettled. Leave Pull out, or make it a classic queue"
	case s.cfg.Prefetch > 0:
		return kept + fmt.Sprintf("all instances have the same Prefetch; this one has %d", s.cfg.Prefetch)
	case s.cfg.Prefetch == 0 && size != defaultWindow:
		return kept + fmt.Sprintf("all instances have the same window; this one has %d, because workers and lookahead can hold %d. Set the same Prefetch on all instances", size, o.MaxWindow)
	}
	return ""
}
