// Onechain runs one handler with one chain and one configuration on three brokers at
// once, and shows that each of twelve outcomes is the same on all of them.
//
//	go run ./examples/onechain
//	go run ./examples/onechain -amqp amqp://localhost -kafka localhost:9092 -sqs http://localhost:9324
//
// The chain is built once: a throttle, a breaker, exactly-once effects by an inbox, a
// time limit, unpacking, metrics. What differs between the brokers is the line that
// makes the source.
package main
