package amqp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

const (
	defaultConnectTimeout = 10 * time.Second
	defaultHeartbeat      = 10 * time.Second
)

// settings is the checked configuration of a broker, complete with the URL's values.
type settings struct {
	Config
	addr    conn.Address   // what the URL says
	nodes   []conn.Node    // the URL's and Addresses, as they were given
	login   *conn.Settings // what a connection is made with
	problem error          // mistakes in it: reported by Check and by every Open
}

func newSettings(rawURL string, cfg Config) settings {
	s := settings{Config: cfg}
	var errs []error
	addr, err := conn.ParseURL(rawURL)
	if err != nil {
		errs = append(errs, err)
	}
	s.addr, s.nodes = addr, append([]conn.Node(nil), addr.Nodes...)
	for i, a := range cfg.Addresses {
		n, err := conn.ParseNode(a, addr.TLS)
		if err != nil {
			errs = append(errs, conn.BadURL("write host or host:port", "Addresses[%d] %v", i, err))
			continue
		}
		s.nodes = append(s.nodes, n)
	}
	errs = append(errs, s.check())
	s.fill()
	s.problem = errors.Join(errs...)
	s.login = &conn.Settings{Problem: s.problem, Address: s.addr, User: s.User, Password: s.Password, External: s.External, RenewEvery: s.RenewEvery,
		TLS: s.TLS, Timeout: s.ConnectTimeout, Heartbeat: s.Heartbeat, Name: s.ConnectionName, Client: s.Client, Dial: s.Dial}
	return s
}

// check reports every mistake in the settings at once.
func (s *settings) check() error {
	l := &problem.List{Op: "rabbitmq broker"}
	if s.Heartbeat < 0 || s.Heartbeat > 65535*time.Second || s.Heartbeat%time.Second != 0 {
		l.Range("Heartbeat", s.Heartbeat, "whole seconds up to 65535s, or 0 for the default, 10s")
	}
	if s.ConnectTimeout < 0 {
		l.Range("ConnectTimeout", s.ConnectTimeout, "positive, or 0 for the default, 10s")
	}
	if s.RenewEvery < 0 {
		l.Range("RenewEvery", s.RenewEvery, "positive, or 0 for never")
	}
	if len(s.User) > codec.MaxShort {
		l.Range("User", fmt.Sprintf("%d bytes long", len(s.User)), "at most 255 bytes long")
	}
	s.checkTLS(l)
	if (s.External || s.addr.External) && !s.addr.TLS {
		l.Conflict("External", nil, "an amqp URL", "the client certificate is the login", "write amqps://")
	}
	if s.Management != "" {
		_, err := managementURL(s.Management)
		l.Join(err)
	}
	s.together(l)
	return l.Err()
}

// fill puts defaults where neither the configuration nor the URL says anything; the configuration
// wins.
func (s *settings) fill() {
	if s.Heartbeat == 0 {
		s.Heartbeat = s.addr.Heartbeat
	}
	if s.Heartbeat == 0 {
		s.Heartbeat = defaultHeartbeat
	}
	if s.ConnectTimeout == 0 {
		s.ConnectTimeout = s.addr.Timeout
	}
	if s.ConnectTimeout == 0 {
		s.ConnectTimeout = defaultConnectTimeout
	}
	s.External = s.External || s.addr.External
	if s.User == "" {
		s.User = s.addr.User
	}
	if s.Password.IsZero() && s.addr.HasUser {
		password := s.addr.Password
		s.Password = transport.Func("the URL", func(context.Context) (string, error) { return password, nil })
	}
	if s.User == "" && s.Password.IsZero() && !s.External {
		s.User = "guest"
		s.Password = transport.Func("the default login", func(context.Context) (string, error) { return "guest", nil })
	}
	s.addr.Password = ""
}
