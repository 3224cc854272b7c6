// Package faults holds the tests of what must hold when things go wrong, on real
// brokers: nothing lost, nothing settled twice, the order of a key kept, a drain
// that ends in time. Each test is named after its situation and carries the id of
// its requirement in a comment; docs/faults.md lists them.
//
// The tests run when the brokers are given (`make test` starts them):
//
//	AMQP_URL=amqp://guest:guest@localhost/ go test -race ./faults
package faults
