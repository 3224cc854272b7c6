package conn

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport"
)

// Settings is how one connects to a broker. They are checked and complete: defaults and
// the URL's values are filled in, and nothing changes them any more.
type Settings struct {
	Address Address // virtual host and what the URL says of TLS

	Problem error // mistakes in the configuration; every connect returns it

	User       string                                                            // of SASL PLAIN
	Password   transport.Secret                                                  // asked at each connect, and again by RenewEvery
	External   bool                                                              // the client certificate is the login
	RenewEvery time.Duration                                                     // ask Password again; 0: only for a JWT, before it expires
	TLS        *tls.Config                                                       // for amqps; nil: the system's authorities
	Timeout    time.Duration                                                     // of TCP, TLS and AMQP handshake together
	Heartbeat  time.Duration                                                     // asked of the broker
	Name       string                                                            // shown in RabbitMQ's management; "": the program's
	Client     func(cfg *amqp091.Config)                                         // the user's changes of the client's configuration; may be nil
	Dial       func(ctx context.Context, network, addr string) (net.Conn, error) // nil: a net.Dialer
}

const maxShort = 255 // bytes of an AMQP short string
