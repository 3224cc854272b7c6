package kafka

import (
	"crypto/tls"
	"testing"

	"github.com/longshore-go/longshore/transport"
)

// F-N26: a password or token that crosses a network without TLS is warned of.
func TestPasswordInClearIsWarnedOf(t *testing.T) {
	login := SASL{User: "app", Password: transport.Static("pw")}
	with := func(m Mechanism) SASL { s := login; s.Mechanism = m; return s }
	for name, c := range map[string]struct {
		addr string
		cfg  Config
		want bool
	}{
		"plain":             {"k1.internal:9092", Config{SASL: login}, true},
		"plain, named":      {"k1.internal:9092", Config{SASL: with(Plain)}, true},
		"a token":           {"k1.internal:9092", Config{SASL: SASL{Mechanism: OAuthBearer, Password: transport.Static("pw")}}, true},
		"scram":             {"k1.internal:9092", Config{SASL: with(ScramSHA512)}, false},
		"no login":          {"k1.internal:9092", Config{}, false},
		"TLS":               {"k1.internal:9092", Config{TLS: true, SASL: login}, false},
		"certificates":      {"k1.internal:9092", Config{TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, SASL: login}, false},
		"on this machine":   {"127.0.0.1:9092", Config{SASL: login}, false},
		"on this machine 6": {"[::1]:9092", Config{SASL: login}, false},
	} {
		if got := New([]string{c.addr}, c.cfg).clearNotice(); (got != "") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
