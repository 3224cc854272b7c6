//go:build !race

package scalesim

const raced = false
