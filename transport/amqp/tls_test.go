package amqp

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/transport"
)

// F-N26: what speaks of TLS beside amqp:// is refused at construction, naming both, and
// so is half of a certificate.
func TestWhatSpeaksOfTLSMeansTLS(t *testing.T) {
	for raw, want := range map[string][]string{
		"amqp://h/?server_name_indication=rabbit":    {"server_name_indication", "begins with amqp"},
		"amqp://h/?cacertfile=ca.pem":                {"cacertfile", "begins with amqp"},
		"amqp://h/?certfile=c.pem&keyfile=k.pem":     {`parameter "keyfile" does not go`, "begins with amqp"},
		"amqps://h/?certfile=c.pem":                  {`"certfile" needs keyfile`, "keyfile"},
		"amqps://h/?keyfile=k.pem":                   {`"keyfile" needs certfile`, "certfile"},
		"amqps://h/?server_name_indication=rabbit":   nil,
		"amqps://h/?certfile=c.pem&keyfile=k.pem":    nil,
		"amqps://h/?cacertfile=ca.pem":               nil,
		"amqp://h/?heartbeat=5&auth_mechanism=plain": nil,
	} {
		err := New(raw, Config{}).set.problem
		if (err == nil) != (want == nil) {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is missing in: %v", raw, part, err)
			}
		}
	}
}

// F-N26: a password that crosses a network without TLS is warned of.
func TestPasswordInClearIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		url  string
		cfg  Config
		want bool
	}{
		{"amqp://app:pw@rabbit.internal", Config{}, true},
		{"amqp://rabbit.internal", Config{User: "app", Password: transport.Static("pw")}, true},
		{"amqp://app:pw@10.1.2.3:5673", Config{}, true},
		{"amqps://app:pw@rabbit.internal", Config{}, false},
		{"amqp://app:pw@localhost", Config{}, false},
		{"amqp://app:pw@127.0.0.1", Config{}, false},
		{"amqp://app:pw@[::1]", Config{}, false},
	} {
		set := New(c.url, c.cfg).set
		text := set.clearNotice(set.nodes[0])
		if (text != "") != c.want || strings.Contains(text, "pw") {
			t.Errorf("%s: %q", c.url, text)
		}
	}
}
