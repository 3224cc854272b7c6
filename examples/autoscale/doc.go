// Command autoscale shows a container that follows its load: a burst arrives, a
// downstream lets in only eight calls at a time, and the container finds that out,
// stays there, and goes back when the burst is over. No broker is needed.
//
//	go run ./examples/autoscale
package main
