//go:build race

package admin_test

// raceFactor is how much more processor time the race detector takes, at most.
const raceFactor = 15
