// Command bridge moves a service from RabbitMQ to Kafka while it works: two producers, three old
// and three new consumers. It cuts over, turns back halfway, cuts over again, and proves from
// its own account and the bridge's ledger that each order had its effect once.
//
//	go run ./examples/bridge                                     # both brokers in this process
//	go run ./examples/bridge -amqp amqp://… -kafka host:9092     # real ones
package main
