// Package workflow moves a live service from one broker to another in steps, and back.
//
//	m := workflow.New(workflow.Config{Route: "orders", Ledger: dir, Ends: ends, Quiet: time.Minute})
//	state, err := m.Cutover(ctx)           // goes on where an interrupted move was
//	state, err = m.Rollback(ctx)           // from any phase
//
// A [Move] is a state machine: [Phase] is the enum, its table says which way messages are moved
// in each phase, and [Phase.Decide] is a pure function of what both sides look like. The phase
// is saved before the next one begins, so an interrupted move goes on where it was.
//
// The files in reading order: phase.go (the table), decide.go (when a phase ends), state.go
// (what is saved), move.go (the loop), ends.go (what it does at real brokers).
package workflow
