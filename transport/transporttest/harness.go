package transporttest

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Harness is what the suite needs to know of a transport. Source is required;
// Publish too, unless the source is a transport.Outlet. Everything else makes
// more checks possible.
//
// Functions are called on the goroutine of the check; they may fail the test
// and register clean-ups.
type Harness struct {
	// Source returns a source on a fresh and empty queue at each call. With
	// Capabilities.DeadLetter, Reject leads to a dead-letter destination of its own.
	Source func(t testing.TB) transport.Source
	// Publish sends messages to the queue of a source and returns when the broker
	// has them. Zero: through the source's Outlet.
	Publish func(t testing.TB, src transport.Source, msgs ...*longshore.Message)

	// Batched is like Source, but settlements that were accepted are not sent
	// by themselves for at least a minute (a long SettleLinger). Zero: Source.
	Batched func(t testing.TB) transport.Source
	// Windowed is like Source, and says how many unsettled deliveries a
	// consumer of it gets at the most, whatever OpenOptions.Window says.
	Windowed func(t testing.TB) (src transport.Source, limit int)
	// Leased is like Source, with a lease that the transport keeps. The shorter it
	// is, the shorter the check: it takes three leases.
	Leased func(t testing.TB) (src transport.Source, lease time.Duration)
	// Missing returns a source on a queue that does not exist and is not made by
	// Open: longshore.CodeNotFound.
	Missing func(t testing.TB) transport.Source
	// BadAuth returns a source whose login is refused: longshore.CodeAuth.
	BadAuth func(t testing.TB) transport.Source

	// Drop cuts the connections of all consumers of the source: they are down.
	Drop func(t testing.TB, src transport.Source)
	// TakeBack makes the broker take back all that consumers of the source hold,
	// without ending them (a lease that lapses, a partition that moves).
	TakeBack func(t testing.TB, src transport.Source)
	// Duplicate makes the broker hand out once more what consumers of the source hold,
	// although their leases are kept, as standard queues of SQS may. Zero: the broker
	// never does.
	Duplicate func(t testing.TB, src transport.Source)
	// Latency makes every answer of the broker come later by d; 0 ends that.
	Latency func(t testing.TB, src transport.Source, d time.Duration)
	// Stall makes the broker answer nothing any more, until the returned function
	// is called. Connections stay open.
	Stall func(t testing.TB, src transport.Source) (resume func())
	// FailSettle makes the broker refuse the next settlement of the source.
	FailSettle func(t testing.TB, src transport.Source)
	// FailPublish makes the broker refuse the next message to the source's queue.
	FailPublish func(t testing.TB, src transport.Source)

	// Depth returns what the broker holds: messages that wait, and those that are
	// with a consumer (-1: not known).
	Depth func(t testing.TB, src transport.Source) (ready, unsettled int)
	// DeadLettered returns how many messages are in the source's dead-letter destination.
	DeadLettered func(t testing.TB, src transport.Source) int

	// Expect returns what is received when m is sent, where the transport
	// documents a difference. It may change its argument. Zero: the same.
	Expect func(m longshore.Message) longshore.Message
	// LossCounts says that the broker counts a lost connection as an attempt although
	// it does not count what is given back (RabbitMQ's quorum queues from 4.3 on).
	LossCounts bool
	// Hidden is how long what the broker hands out at the very moment of a cancel may
	// stay away: the answer to a poll that is cut off is lost, and a standard queue of
	// SQS does not give it again before its lease ends. Zero: nothing does.
	Hidden time.Duration
	// Operations are the kinds of calls that a consumer reports to OpenOptions.Operations
	// for a message that is received and acked, and one that is given back. Zero: none.
	Operations []longshore.OperationKind
	// UserID is a Message.UserID that the broker accepts. Zero: none is sent.
	UserID string

	// Patience is how long something that must happen may take. Zero: 10 s.
	Patience time.Duration
	// Quiet is how long nothing must be seen until it counts as "does not
	// come". Zero: 200 ms.
	Quiet time.Duration
	// Delay is the delay of a Nack. Zero: 1 s.
	Delay time.Duration
	// Parallel makes the checks run side by side. The functions above must allow
	// that, and a fault must touch the given source only.
	Parallel bool
}

func (h Harness) withDefaults() *Harness {
	if h.Batched == nil {
		h.Batched = h.Source
	}
	if h.Patience == 0 {
		h.Patience = 10 * time.Second
	}
	if h.Quiet == 0 {
		h.Quiet = 200 * time.Millisecond
	}
	if h.Delay == 0 {
		h.Delay = time.Second
	}
	return &h
}

// Name returns a name for a queue that no other call in this process returns,
// made of letters, digits and hyphens and at most 60 long.
func Name(t testing.TB) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, t.Name())
	clean = strings.Trim(clean[max(0, len(clean)-32):], "-")
	return clean + "-" + unique()
}
