package amqp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
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

	// Addresses are more nodes of the same cluster beside the URL's, as host or
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

const (
	defaultConnectTimeout = 10 * time.Second
	defaultHeartbeat      = 10 * time.Second
)

// settings is the checked configuration of a broker.
type settings struct {
	Config
	addr    address
	nodes   []node
	problem error // what Check and every Open report
}

func newSettings(rawURL string, cfg Config) settings {
	s := settings{Config: cfg}
	var errs []error
	addr, err := parseURL(rawURL)
	if err != nil {
		errs = append(errs, err)
	}
	s.addr, s.nodes = addr, append([]node(nil), addr.nodes...)
	for i, a := range cfg.Addresses {
		n, err := parseNode(a, addr.tls)
		if err != nil {
			errs = append(errs, badAddress(fmt.Sprintf("Addresses[%d]: %v", i, err), "write host or host:port"))
			continue
		}
		s.nodes = append(s.nodes, n)
	}
	errs = append(errs, s.check()...)
	s.fill()
	s.problem = errors.Join(errs...)
	return s
}

func (s *settings) check() []error {
	var errs []error
	bad := func(field string, value any, want string) {
		errs = append(errs, &longshore.Error{Code: longshore.CodeConfig, Op: "rabbitmq broker",
			Err: fmt.Errorf("%s is %v, must be %s", field, value, want)})
	}
	if s.Heartbeat < 0 || s.Heartbeat > 65535*time.Second || s.Heartbeat%time.Second != 0 {
		bad("Heartbeat", s.Heartbeat, "0 (the default, 10s) or whole seconds up to 65535")
	}
	if s.ConnectTimeout < 0 {
		bad("ConnectTimeout", s.ConnectTimeout, "0 (the default, 10s) or more")
	}
	if s.RenewEvery < 0 {
		bad("RenewEvery", s.RenewEvery, "0 (never) or more")
	}
	if len(s.User) > codec.MaxShort {
		bad("User", fmt.Sprintf("%d bytes long", len(s.User)), "at most 255 bytes")
	}
	s.checkTLS(bad, clashes("rabbitmq broker", "", &errs))
	if (s.External || s.addr.external) && !s.addr.tls {
		bad("External", "true", "used with an amqps URL: the client certificate is the login")
	}
	if s.Management != "" {
		if _, err := managementURL(s.Management); err != nil {
			errs = append(errs, err)
		}
	}
	s.together(clashes("rabbitmq broker", "", &errs))
	return errs
}

func (s *settings) fill() {
	if s.Heartbeat == 0 {
		s.Heartbeat = s.addr.heartbeat
	}
	if s.Heartbeat == 0 {
		s.Heartbeat = defaultHeartbeat
	}
	if s.ConnectTimeout == 0 {
		s.ConnectTimeout = s.addr.timeout
	}
	if s.ConnectTimeout == 0 {
		s.ConnectTimeout = defaultConnectTimeout
	}
	s.External = s.External || s.addr.external
	if s.User == "" {
		s.User = s.addr.user
	}
	if s.Password.IsZero() && s.addr.hasUser {
		password := s.addr.password
		s.Password = transport.Func("the URL", func(context.Context) (string, error) { return password, nil })
	}
	if s.User == "" && s.Password.IsZero() && !s.External {
		s.User = "guest"
		s.Password = transport.Func("the default login", func(context.Context) (string, error) { return "guest", nil })
	}
	s.addr.password = ""
}
