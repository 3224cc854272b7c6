// Command serve runs an amqptest server for a foreign test suite: AMQP on one
// port and, on another, as much of RabbitMQ's management API as the suite uses
// to drop connections and raise alarms.
//
//	go run ./transport/amqp/amqptest/internal/serve --addr 127.0.0.1:5672 --flavor 4.3
package main
