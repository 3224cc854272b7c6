package amqp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
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
	addr    conn.Address
	nodes   []conn.Node    // the URL's and Addresses, as they were given
	login   *conn.Settings // what a connection is made with
	problem error          // what is wrong with it: reported by Check and by every Open
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
			errs = append(errs, conn.BadAddress(fmt.Sprintf("Addresses[%d]: %v", i, err), "write host or host:port"))
			continue
		}
		s.nodes = append(s.nodes, n)
	}
	errs = append(errs, s.check()...)
	s.fill()
	s.problem = errors.Join(errs...)
	s.login = &conn.Settings{Problem: s.problem, Address: s.addr, User: s.User, Password: s.Password, External: s.External, RenewEvery: s.RenewEvery,
		TLS: s.TLS, Timeout: s.ConnectTimeout, Heartbeat: s.Heartbeat, Name: s.ConnectionName, Client: s.Client, Dial: s.Dial}
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
	if (s.External || s.addr.External) && !s.addr.TLS {
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
