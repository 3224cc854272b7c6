// Package dispatch decides which of the deliveries a container holds runs next.
//
// A [Scheduler] is a pure state machine: it starts no goroutine, reads no clock and does
// no I/O, so that a seeded simulation can drive it through millions of steps and replay
// any of them exactly. Its owner guards it with a mutex. It composes six parts, each of
// which owns its fields:
//
//	ledger   every sum, and from them how much more fits      ledger.go
//	lanes    what waits behind others, and why                lanes.go orphans.go (lane.go table.go)
//	ready    what waits for a worker                          ring.go
//	parking  what waits for its time                          parking.go (heap.go)
//	running  what is with a handler                           running.go
//	arrivals everything by its age                            arrivals.go
//
// Reading order: item.go has the states of an item, lane.go the reasons why a lane is
// blocked, scheduler.go the way of a delivery from Admit to Finish, park.go the retries,
// take.go what the container gives back to the broker, lose.go and orphans.go what the
// broker takes back, ledger.go how much more fits, arrivals.go and longest.go what statistics
// read without a walk, walk.go what is read for people,
// check.go the invariants.
package dispatch
