// Package offsets tracks which records of one assigned partition are done and writes
// that into the metadata of a commit, so that the next owner of the partition repeats
// as little as possible.
//
//	t := offsets.New(100, epoch)
//	a, b := t.Add(100, epoch, first), t.Add(101, epoch, second)
//	t.Ack(b)                               // Base is still 100: a is not done
//	s := t.Snapshot(offsets.DefaultBudget, mark)   // says that 101 is done
//	t.Ack(a)                               // Base is 102
//
// In reading order:
//
//   - tracker.go: [Tracker], the records in hand, their acknowledgements in any order,
//     and the watermark, which is the offset that can be committed.
//   - snapshot.go: one consistent [Snapshot] of a tracker, which a commit carries.
//   - metadata.go: the text alongside a committed offset, its checks, and [Saved], which
//     answers for it after an assignment. openlist.go has the densest of its formats.
//   - bound.go: how much may be handed out so that the text can always describe it.
//
// Nothing here reads a clock, starts a goroutine or does I/O, and nothing is safe for
// concurrent use: the partition's lock guards its tracker.
package offsets
