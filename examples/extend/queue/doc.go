// Package queue is a whole transport, as small as one can be: a queue in a slice.
// docs/how-to/write-a-transport.md shows it.
package queue
