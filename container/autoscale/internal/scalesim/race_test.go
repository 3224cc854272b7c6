//go:build race

package scalesim

// raced: the race detector makes a run eight times as long.
const raced = true
