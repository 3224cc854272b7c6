package kafka

import (
	"net"

	"github.com/longshore-go/longshore/internal/hosts"
)

// securityNotices says what is less secure than it looks.
func (b *Broker) securityNotices() (texts []string) {
	if t := b.cfg.tls(); t != nil && t.InsecureSkipVerify {
		texts = append(texts, "the certificates of kafka at "+b.address()+" are NOT verified: TLSConfig.InsecureSkipVerify is set")
	}
	if text := b.clearNotice(); text != "" {
		texts = append(texts, text)
	}
	return texts
}

// clearNotice warns of a password or token that crosses a network as it is, to the first
// address for which it does; "" where none does. SCRAM sends no password.
func (b *Broker) clearNotice() string {
	s := &b.cfg.SASL
	plain := s.Mechanism == OAuthBearer || s.Mechanism == Plain || s.Mechanism == "" && s.User != ""
	if b.cfg.tls() != nil || s.Native != nil || !plain {
		return ""
	}
	for _, seed := range b.seeds {
		if host, _, err := net.SplitHostPort(seed); err == nil && !hosts.Loopback(host) {
			return "the password goes to kafka at " + seed + " without TLS: anyone on the network path can read it; set TLS, in a URL kafkas://, or a SCRAM mechanism"
		}
	}
	return ""
}
