// Package fleet reads the admin APIs of many instances at once. Each instance has a
// goroutine and deadlines of its own, so one that does not answer delays no other. What
// the instances have in common, their totals and where they differ are pure functions of a
// [Snapshot].
package fleet
