// Package amqptest is an AMQP 0-9-1 server in the test process that behaves as
// RabbitMQ does, so that tests of AMQP clients need nothing installed:
//
//	func TestOrders(t *testing.T) {
//		srv := amqptest.New(t) // ready in less than 2 ms, closes with the test
//		conn, err := amqp091.Dial(srv.URL)
//		...
//		srv.Cut(nil)                          // the network fails
//		srv.CloseConnections(320, "bye", nil) // an operator closes connections
//		srv.Block("low on memory")            // a memory alarm
//		q, _ := srv.Queue("/", "orders")      // q.Ready, q.Unacked, q.Consumers
//	}
//
// It is a test double with the true protocol, not a broker: everything is in
// memory, one lock guards all of it, nothing is replicated. Do not run it in
// production.
//
// # What it does
//
// Handshake with PLAIN, AMQPLAIN and (with TLS) EXTERNAL, tuning, heartbeats,
// channels, frame splitting, all field-table types; the codes and nearly always
// the words of RabbitMQ's connection and channel errors. Exchanges direct,
// fanout, topic and headers. Classic and quorum queues: exclusive, auto-delete,
// server-named, passive, arguments checked for equivalence; time to live of
// queues and messages, x-expires, length limits with the three overflow
// policies, dead-lettering with x-death, priorities, single active consumer,
// delivery counts and limits. Prefetch per consumer and per channel, consumer
// priorities, exclusive consumers, cancel notifications, mandatory returns,
// confirms, recover, connection.blocked, the consumer timeout, direct reply-to,
// connection.update-secret. [Flavor] chooses among the versions where they differ.
//
// # Is it true?
//
// scripts/amqptest-conformance.sh runs amqp091-go's own test suite against it and
// pika, a client that is not Go, and names what differs. Beyond that, testdata
// holds what clients of RabbitMQ 3.10.8, 4.0.5 and 4.3.6 saw in two dozen scenes,
// error texts included; the tests play them here, and with AMQP_URL there.
//
// # Time
//
// With [Config.VirtualClock] the server's time stands still until
// [Server.Advance]: a message with a time to live of an hour expires in a test of
// a millisecond. TTL, x-expires, the consumer timeout and x-death follow it.
//
// # What it leaves out
//
// These answer 540 NOT_IMPLEMENTED: transactions, exchange-to-exchange bindings,
// alternate exchanges, stream queues, and what RabbitMQ itself does not
// implement: immediate, prefetch size, recover without requeue, channel.flow
// with active=false.
//
// Left out without an error:
//
//   - crashes of RabbitMQ itself, such as 3.10's on a malformed x-death, and what
//     is eventual there: a quorum queue's length limit holds exactly here;
//   - policies, operator policies and runtime parameters: arguments only;
//   - plugins: x-delayed-message and others are unknown exchange types;
//   - flow control between processes: there is no connection state "flow". A
//     consumer whose socket is full gets no more deliveries until it has read;
//   - memory and disk: lazy queues are queues, a message is lost with the process;
//     [Server.Restart] keeps durable queues with their persistent messages;
//   - clusters, leaders, quorum size, x-queue-leader-locator: accepted, no effect;
//   - at-least-once dead-lettering of quorum queues: accepted, done at most once;
//   - the two priority classes of quorum queues in RabbitMQ 4: first in, first out.
package amqptest
