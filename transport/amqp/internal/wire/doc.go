// Package wire corrects what happens below the AMQP client library: [Conn] is a
// net.Conn between github.com/rabbitmq/amqp091-go and the broker. Each behaviour that
// it works around has a file of its own, with the versions that show it and a public
// reference:
//
//   - deliveriesaftercancel.go: deliveries that follow cancel-ok are dropped.
//   - unreadableheaders.go: some legal message headers end the connection.
//   - hangup.go: a refused login looks like any other failed handshake.
//
// A Conn goes under the client:
//
//	raw, err := net.Dial("tcp", addr)
//	client, err := amqp091.Open(wire.New(raw), amqp091.Config{})
//
// In reading order: conn.go passes frames through and calls the workarounds,
// framebounds.go finds the place between two outgoing frames. Nothing here knows a
// message, a consumer or a setting of Longshore; all of it could move upstream.
package wire
