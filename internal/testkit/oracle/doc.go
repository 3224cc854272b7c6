// Package oracle finds loss, double effects and broken order in fault tests. Every
// message carries its number; a ledger outside the code under test notes what was
// published, handled, settled and dead-lettered, and the sets are compared when
// everything is idle:
//
//	l := oracle.New()
//	// producer:  l.Published(id, key)
//	// handler:   done := l.Begin(id, key, attempt); …; done(err == nil)
//	// dead:      l.Dead(id)
//	r := l.Report()
//	if bad := r.Problems(oracle.Allow{Twice: inFlightAtTheFault}); len(bad) > 0 { … }
//
// A ledger can live in a file ([OpenFile]) so that it survives the process that
// writes it: consumers that are killed write there, line by line.
package oracle
