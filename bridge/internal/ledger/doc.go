// Package ledger is the record of a bridge's route: which message, by identity and digest, was
// taken from the source, confirmed by the target, parked or dropped as a loop. It answers two
// questions: whether a message is at the target already, and what is missing, repeated or
// changed there.
//
//	l, err := ledger.Open(dir, time.Now)
//	known := l.Ask(record)                 // is the message at the target already?
//	err = l.Add(ctx, record)               // returns when a killed process would not lose it
//
// A directory holds append-only segments, one for each process that wrote. A record carries its
// own checksum, so the torn tail of a killed process is recognised and ignored. [Ledger.Add]
// returns once its records have been handed to the operating system: a killed process loses
// none of those, a machine that loses power may lose the last ones.
//
// Read record.go first, then ledger.go, read.go and account.go.
package ledger
