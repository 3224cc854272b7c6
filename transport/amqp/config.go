package amqp

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport"
)

// Config is the configuration of a [Broker]. The zero value works.
type Config struct {
	// User and Password are the login, taken as they are. They win over the URL's.
	// The password is asked at each connect. Zero: the URL's, else guest and guest.
	User     string
	Password transport.Secret
	// External logs in by the client certificate in TLS (SASL EXTERNAL), without User
	// and Password; those of the URL are not used.
	External bool
	// RenewEvery asks Password again after this time while connected and sends a
	// changed one to the broker (connection.update-secret), for tokens that expire. A
	// password that is a JWT with an expiry is renewed after four fifths of its
	// life without this. It needs Password: a URL's never changes. Zero: only such.
	RenewEvery time.Duration

	// Addresses are more nodes of the same cluster besides the URL's, as host or
	// host:port. Their order is shuffled once and each attempt to connect takes
	// the next one.
	Addresses []string
	// TLS is the configuration for amqps URLs; ServerName is each node's own host
	// name unless it is set here. Zero: the system's authorities.
	TLS *tls.Config
	// ConnectTimeout bounds TCP, TLS and AMQP handshake together. Zero: 10 s.
	ConnectTimeout time.Duration
	// Heartbeat is the interval asked of the broker, in whole seconds; a silent
	// connection is given up after one and a half of it. Zero: 10 s.
	Heartbeat time.Duration
	// ConnectionName is shown in RabbitMQ's management. Zero: the program's name.
	ConnectionName string

	// Management is the address of RabbitMQ's management API, as http://host:15672 or
	// https://host:15671, with TLS as it is set here. AMQP does not tell a queue's type,
	// its arguments or the policies on it; this does, so that a delivery limit that
	// Declare does not show is known and obeyed. The login is the broker's, or the
	// address's own (http://user:password@host:15672), with the tag management. Zero: what
	// Declare and the broker's version tell is all that is known.
	Management string

	// Dial makes the TCP connections. Zero: a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Client may change the client's configuration before each connect. SASL,
	// Vhost, TLSClientConfig, Dial and Recovery are ours: changes of these make the
	// connect fail with [longshore.CodeConfig].
	Client func(*amqp091.Config)
}
