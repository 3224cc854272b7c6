package amqp

import (
	"fmt"

	"github.com/longshore-go/longshore/internal/hosts"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// What speaks of TLS means TLS: a URL that says amqp alongside it is refused, and so is half
// of a certificate.
func (s *settings) checkTLS(l *problem.List) {
	var spoken []string
	for _, p := range []struct{ name, value string }{
		{"cacertfile", s.addr.CAFile}, {"certfile", s.addr.CertFile}, {"keyfile", s.addr.KeyFile}, {"server_name_indication", s.addr.PeerName},
	} {
		if p.value != "" {
			spoken = append(spoken, p.name)
		}
	}
	if !s.addr.TLS {
		if s.TLS != nil {
			l.Conflict("TLS", nil, "a URL that begins with amqp", "the connection would not be encrypted", "write amqps://, or leave {TLS} out")
		}
		for _, name := range spoken {
			l.Add(problem.Conflict(name, nil, "a URL that begins with amqp", "the connection would not be encrypted", "write amqps://").In(problem.Parameter))
		}
	}
	if one, other := s.addr.CertFile != "", s.addr.KeyFile != ""; one != other {
		have, missing := "certfile", "keyfile"
		if other {
			have, missing = missing, have
		}
		l.Add(problem.Bad(have, "add "+missing, "needs %s as well", missing).In(problem.Parameter).OfKind(problem.Missing))
	}
}

// clearNotice warns of a password that crosses a network as it is; "" where none does.
func (s *settings) clearNotice(n conn.Node) string {
	if s.addr.TLS || s.External || s.Password.IsZero() || hosts.Loopback(n.Host) {
		return ""
	}
	return fmt.Sprintf("the password goes to rabbitmq at %s without TLS: anyone on the network path can read it; use amqps://", n)
}
