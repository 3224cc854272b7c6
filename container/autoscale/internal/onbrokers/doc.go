// Package onbrokers runs the simulation's burst once on each real broker: up, down
// again, nothing redelivered, and what the broker sees of it. It has no code
// outside its tests, which run when the brokers are given:
//
//	AMQP_URL=amqp://guest:guest@localhost/ go test ./container/autoscale/internal/onbrokers
package onbrokers
