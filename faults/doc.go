// Package faults holds the tests of what must hold when things go wrong, on real
// brokers: nothing lost, nothing settled twice, the order of a key kept, a drain
// that ends in time. Each test is named after its situation and carries the id of
// its requirement in a comment; docs/faults.md lists them.
//
// The tests run when the brokers are given (`make test` starts them):
//
//	AMQP_URL=amqp://guest:guest@localhost/ go test -race ./faults
//
// By requirement, wherever its tests are; faults/requirements.txt lists them all:
//
//	go test ./faults -run F-C01
//	make faults RUN=F-C01
//
// `make faults` runs all and writes docs/faults.md. `make soak-faults` mixes random
// faults for minutes, `make sabotage` breaks the code and expects these tests to see it.
package faults
