// Command transaction prices orders from one Kafka topic into another, exactly once. Two
// instances share the orders, a third joins while they work, and some handlers fail after they
// have published: the topic of prices has one price of each order all the same. The broker
// runs in this process; set KAFKA_ADDRS for a real one.
//
//	go run ./examples/transaction
package main
