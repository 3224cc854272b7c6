package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// ledger is what a partition has acknowledged and what of it the broker has. Its
// partition's lock guards it.
type ledger struct {
	budget    int                   // characters that a commit may save; less on brokers that allow less, 0: none
	committed uint64                // the tracker's version that the broker has
	at        int64                 // the position that the broker has; -1: none that is known
	told      told                  // what the broker has been told is done; a commit in pieces takes back none of it
	forgotten int                   // records that are done and that the last commit could not describe
	acked     []*longshore.Delivery // those that no commit has carried, oldest first, for the report if none does
}

// told is a position and the text that was committed with it, as the broker has them.
type told struct {
	at   int64  // the position that the text was written for
	text string // the metadata
}

// saved is what the text describes.
func (t told) saved(mark offsets.Mark) offsets.Saved {
	s, _ := offsets.Decode(t.text, mark, t.at)
	return s
}

// pending is one partition in a commit.
type pending struct {
	p     *partition       // whose ledger is written on once the broker has it
	s     offsets.Snapshot // taken under the lock, so that progress made meanwhile goes into the next commit
	acked int              // how many of the ledger's acknowledgements it carries

	outputs []*output // what handlers of the records done have published; the position describes all of them
	left    int64     // bytes that they have published and that the position cannot describe
	more    bool      // it is a piece: what handlers have published is too much for one transaction
}

const (
	// maxUncommitted is how many records of a partition may be done and not committed:
	// each is kept for the report, and repeated if this member ends. Only where commits
	// fail for a while are there so many.
	maxUncommitted = maxWindow
	// maxIdleAcked is the capacity that is kept for the next acknowledgements.
	maxIdleAcked = 4096
	// minBudget is the least that can save anything worth its bytes.
	minBudget = 64
)

// room is how many more acknowledgements the ledger takes.
func (l *ledger) room() int { return maxUncommitted - len(l.acked) }

// settled takes the broker's answer to a commit. Text that was too long is shorter the
// next time.
func (l *ledger) settled(one *pending, err error) {
	switch {
	case err == nil:
		l.committed, l.forgotten, l.at = one.s.Version, one.s.Forgotten, one.s.Offset
		l.told = told{one.s.Offset, one.s.Saved}
		n := min(one.acked, len(l.acked))
		rest := copy(l.acked, l.acked[n:])
		clear(l.acked[rest:])
		if l.acked = l.acked[:rest]; rest == 0 && cap(l.acked) > maxIdleAcked {
			l.acked = nil
		}
	case savesTooMuch(err):
		if l.budget /= 2; l.budget < minBudget {
			l.budget = 0
		}
	}
}

// close hands over the acknowledgements that no commit has carried.
func (l *ledger) close() []*longshore.Delivery {
	acked := l.acked
	l.acked = nil
	return acked
}

// savesTooMuch: the text alongside a position is too long, or all texts together.
func savesTooMuch(err error) bool {
	return errors.Is(err, kerr.OffsetMetadataTooLarge) || errors.Is(err, kerr.InvalidCommitOffsetSize) ||
		errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}
