// Command twobrokers lets one handler with one inbox consume the same messages from
// RabbitMQ and from Kafka at once, and does the work of each once: 10,000 ids, each
// published on both brokers, while the consuming processes are killed with SIGKILL.
// It is how a move from one broker to another begins: both are live, and it does not
// matter which one is first.
//
//	go run ./examples/twobrokers
//
// It needs nothing: both brokers run in this process and the database is a SQLite
// file. AMQP_URL, KAFKA_ADDRS and PG_DSN make it use yours instead; the
// tables are removed at the end, the queue goes after ten minutes, the topic stays.
//
// What makes the two copies one message is [longshore.Identity]: the header
// longshore-id, which the producer writes on both.
package main
