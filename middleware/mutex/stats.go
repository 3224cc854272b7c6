package mutex

import "sync/atomic"

// Stats counts what a [Mutex] has done since it was made.
type Stats struct {
	// Acquired, Held and Absent are the looks at rows by their outcome. AbsentFirst
	// are those absent ones that were no visible copy: more than a few mean that the
	// producer publishes before its commit, or into another database.
	Acquired, Held, Absent, AbsentFirst int64
	// Duplicates are messages for which there was more than one row; see
	// Config.NoUniqueIndex.
	Duplicates int64
	// Committed transactions, Failed ones (rolled back, or never begun) and those of
	// which the outcome is Unknown.
	Committed, Failed, Unknown int64
}

type counters struct {
	acquired, held, absent, absentFirst, duplicates, committed, failed, unknown atomic.Int64
}

// Stats returns the counts.
func (m *Mutex) Stats() Stats {
	c := &m.counter
	return Stats{Acquired: c.acquired.Load(), Held: c.held.Load(), Absent: c.absent.Load(), AbsentFirst: c.absentFirst.Load(), Duplicates: c.duplicates.Load(),
		Committed: c.committed.Load(), Failed: c.failed.Load(), Unknown: c.unknown.Load()}
}
