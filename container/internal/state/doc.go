// Package state says what a container may do, as a value of three axes: how it
// stands with the broker ([Subscription]), why no work may start ([Holds]), and how
// far a stop has come ([Stop]). Everything else is derived from them:
//
//	axes := state.Axes{Sub: state.Open, Holds: state.Operator}
//	axes.Intake(state.Traits{}) // state.Paused
//	axes.Starts()               // true: what was received is still worked on
//
// It is pure: no clock, no goroutine, no I/O. The container changes one axis at a
// time and asks again; it keeps no flag beside them that could disagree.
//
// Reading order: axes.go (the three axes), intake.go (the table that is derived from
// them).
package state
