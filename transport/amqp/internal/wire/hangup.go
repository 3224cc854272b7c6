package wire

import (
	"errors"
	"io"
	"syscall"
)

// A broker that refuses a login may just end the connection, and the client library then
// returns the same error as for any other failure of the handshake. Whether the peer hung
// up is therefore noted here.
//
// Affected: RabbitMQ 3.10 (it resets the connection) and every broker whose client does
// not announce authentication_failure_close; amqp091-go up to 1.16.
// Reference: https://www.rabbitmq.com/docs/auth-notification and
// https://github.com/rabbitmq/amqp091-go/issues/392.

// HungUp reports whether the peer, or something in between, ended the connection.
func (c *Conn) HungUp() bool { return c.hungUp.Load() }

func (c *Conn) noteEnd(err error) {
	if IsEnd(err) {
		c.hungUp.Store(true)
	}
}

// IsEnd reports whether an error means that the peer, or something in between, ended the
// connection.
func IsEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
