package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/wire"
)

// Who refuses a login without a word hangs up, and so does a node that goes down. RabbitMQ
// leaves whom it refuses waiting for three seconds before that; a faster end may have any
// reason, so the node is asked again before the login is blamed, which no waiting would cure.
const (
	loginTries = 3
	quickEnd   = time.Second
)

// connect makes one attempt at one node.
func (l *Shared) connect(ctx context.Context, n Node) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, l.set.Timeout)
	defer cancel()
	for try := 1; ; try++ {
		began := time.Now()
		s, hungUp, err := l.login(ctx, n)
		if try == loginTries || !hungUp || !errors.Is(err, longshore.CodeAuth) || time.Since(began) >= quickEnd {
			return s, err
		}
	}
}

// login connects and opens. hungUp: the peer ended the connection.
func (l *Shared) login(ctx context.Context, n Node) (opened *Session, hungUp bool, _ error) {
	cfg, token, err := l.set.client(ctx, l.purpose, n)
	if err != nil {
		return nil, false, err
	}
	raw, err := l.set.dial(ctx, n)
	if err != nil {
		return nil, false, l.set.unreachable(n, err)
	}
	if cfg.TLSClientConfig != nil {
		secure := tls.Client(raw, cfg.TLSClientConfig)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, false, l.set.tlsError(n, err)
		}
		raw = secure
	}
	framed := wire.New(raw)
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn, err := amqp091.Open(framed, cfg)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		if ctx.Err() != nil {
			return nil, false, l.set.unreachable(n, ctx.Err())
		}
		hungUp = framed.HungUp()
		return nil, hungUp, l.set.refused(n, err, hungUp)
	}
	s := &Session{AMQP: conn, raw: raw, Node: n, Version: parseVersion(conn.Properties), Frame: conn.Config.FrameSize,
		done: make(chan struct{}), changed: make(chan struct{})}
	s.watch(l.event)
	l.set.renew(s, token) //nolint:contextcheck // outlives the connect
	return s, false, nil
}

func (s *Settings) dial(ctx context.Context, n Node) (net.Conn, error) {
	if s.Dial != nil {
		return s.Dial(ctx, "tcp", n.String())
	}
	return new(net.Dialer).DialContext(ctx, "tcp", n.String())
}

// client is the client's configuration for one connect, with the password asked
// now.
func (s *Settings) client(ctx context.Context, purpose string, n Node) (amqp091.Config, string, error) {
	cfg := amqp091.Config{Vhost: s.Address.VHost, Heartbeat: s.Heartbeat, Locale: "en_US", Properties: amqp091.NewConnectionProperties()}
	name := s.Name
	if name == "" {
		name = filepath.Base(os.Args[0])
	}
	cfg.Properties["longshore_program"] = program()
	cfg.Properties.SetClientConnectionName(name + " (" + purpose + ")")
	if s.Client != nil {
		s.Client(&cfg)
		if cfg.Recovery != nil || cfg.SASL != nil || cfg.TLSClientConfig != nil || cfg.Dial != nil || cfg.Vhost != s.Address.VHost {
			return cfg, "", &longshore.Error{Code: longshore.CodeConfig, Op: "connect to rabbitmq at " + n.String(),
				Err:  errors.New("Config.Client changed Recovery, SASL, TLSClientConfig, Dial or Vhost, which are ours"),
				Hint: "use the fields of amqp.Config; Recovery must stay off, it lets late acks remove other messages"}
		}
	}
	if s.Address.TLS {
		t, err := s.tlsConfig(n)
		if err != nil {
			return cfg, "", err
		}
		cfg.TLSClientConfig = t
	}
	if s.External {
		cfg.SASL = []amqp091.Authentication{&amqp091.ExternalAuth{}}
		return cfg, "", nil
	}
	password, err := s.Password.Get(ctx)
	if err != nil {
		return cfg, "", &longshore.Error{Code: longshore.CodeAuth, Op: "connect to rabbitmq at " + n.String(),
			Err: fmt.Errorf("the password cannot be had from %s: %w", s.Password.From(), err)}
	}
	cfg.SASL = []amqp091.Authentication{&amqp091.PlainAuth{Username: s.User, Password: password}}
	return cfg, password, nil
}

// tlsConfig is the configured one with the name of the node that is dialled.
func (s *Settings) tlsConfig(n Node) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.TLS != nil {
		t = s.TLS.Clone()
	}
	if t.ServerName == "" {
		t.ServerName = s.Address.PeerName
	}
	if t.ServerName == "" {
		t.ServerName = n.Host
	}
	bad := func(err error) (*tls.Config, error) {
		return nil, &longshore.Error{Code: longshore.CodeTLS, Op: "connect to rabbitmq at " + n.String(), Err: err,
			Hint: "check the files named by the URL's cacertfile, certfile and keyfile"}
	}
	if s.Address.CAFile != "" {
		pem, err := os.ReadFile(s.Address.CAFile)
		if err != nil {
			return bad(err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return bad(fmt.Errorf("no certificate in %s", s.Address.CAFile))
		}
	}
	if s.Address.CertFile != "" || s.Address.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(s.Address.CertFile, s.Address.KeyFile)
		if err != nil {
			return bad(err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}
