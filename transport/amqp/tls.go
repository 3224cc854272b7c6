package amqp

import (
	"fmt"
	"strings"

	"github.com/longshore-go/longshore/internal/hosts"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// What speaks of TLS means TLS: a URL that says amqp beside it is refused, and so is half
// of a certificate.
func (s *settings) checkTLS(bad func(field string, value any, want string), clash clash) {
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
			bad("TLS", "set", "left out where the URL says amqp; write amqps:// to use it")
		}
		if len(spoken) > 0 {
			clash("the URL's "+strings.Join(spoken, ", "), "its scheme amqp", "the connection would not be encrypted", "write amqps://")
		}
	}
	if one, other := s.addr.CertFile != "", s.addr.KeyFile != ""; one != other {
		have, missing := "certfile", "keyfile"
		if other {
			have, missing = missing, have
		}
		bad("the URL's "+have, "set alone", "given together with "+missing)
	}
}

// clearNotice warns of a password that crosses a network as it is; "" where none does.
func (s *settings) clearNotice(n conn.Node) string {
	if s.addr.TLS || s.External || s.Password.IsZero() || hosts.Loopback(n.Host) {
		return ""
	}
	return fmt.Sprintf("the password goes to rabbitmq at %s without TLS: anybody on the way can read it; use amqps://", n)
}
