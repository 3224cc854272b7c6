// Package dispatch decides which of the deliveries a container holds runs next.
//
// A [Scheduler] is a pure state machine: it starts no goroutine, reads no clock and does
// no I/O, so that a seeded simulation can drive it through millions of steps and replay
// any of them exactly. Its owner guards it with a mutex. It composes six parts, each of
// which owns its fields:
//
//	ledger   all sums, and how much more fits                 ledger.go
//	lanes    items behind others of their key, and why        lanes.go orphans.go (lane.go table.go)
//	ready    items that wait for a worker                     ring.go
//	parking  items that wait for their time                   parking.go (heap.go)
//	running  items with a handler                             running.go
//	arrivals all items by their age                           arrivals.go
//
// Reading order: item.go has the states of an item, lane.go the reasons why a lane is
// blocked, scheduler.go the way of a delivery from Admit to Finish, park.go the retries,
// take.go the items that go back to the broker, lose.go and orphans.go the items that the
// broker takes back, ledger.go the limits, arrivals.go and longest.go the numbers that
// statistics read without a walk, walk.go the walks for operators, check.go the invariants.
package dispatch
