// Command sharegroup consumes one Kafka partition as a queue: thirty workers of three instances
// take records of it at once, and one record in fifty that takes a second holds back none of the
// others. The broker runs in this process; set KAFKA_ADDRS for a real one, from Kafka 4.2 on.
//
//	go run ./examples/sharegroup
package main
