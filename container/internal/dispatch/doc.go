// Package dispatch decides which of the deliveries a container holds runs next.
//
// A [Scheduler] owns the items, the ring of those that are ready, the lanes that keep
// an order, the heap of those that wait for their time, and every sum over them. It is
// a pure state machine: it starts no goroutine, reads no clock and does no I/O, so that
// a seeded simulation can drive it through millions of steps and replay any of them
// exactly. Its owner guards it with a mutex.
//
// Reading order: item.go has the states of an item and the table of moves between
// them, lane.go the reasons why a lane stands, scheduler.go the way of a delivery
// from Admit to Finish, park.go the retries, take.go what goes back to the broker,
// lose.go what the broker takes back, room.go how much more fits, check.go the
// invariants.
package dispatch
