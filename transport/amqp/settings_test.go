package amqp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/transport"
)

// F-K03: all problems at once, each entry named.
func TestAllProblemsOfAnAddressAtOnce(t *testing.T) {
	s := newSettings("amqp://a,b:x,,c:1:2/v?heartbeat=no&color=red", Config{Addresses: []string{"ok", "bad port:1", "host:99999"}, Heartbeat: -1})
	if s.problem == nil {
		t.Fatal("nothing was reported")
	}
	for _, want := range []string{"host 2 of the URL", "host 3 of the URL", "host 4 of the URL", `"heartbeat"`, `"color"`, "Addresses[1]", "Addresses[2]", "Heartbeat"} {
		if !strings.Contains(s.problem.Error(), want) {
			t.Errorf("%s is not reported in: %v", want, s.problem)
		}
	}
}

func TestSeveralHostsInOneURL(t *testing.T) {
	s := newSettings("amqp://u:p@a:1,b,[::1]:3/shop", Config{Addresses: []string{"c"}})
	if got := fmt.Sprint(s.nodes); got != "[a:1 b:5672 [::1]:3 c:5672]" || s.problem != nil {
		t.Errorf("nodes %s, %v", got, s.problem)
	}
}

func TestDestinations(t *testing.T) {
	for _, names := range [][2]string{{"", "orders"}, {"events", "order.paid"}, {"a/b", "c/d"}, {"100%", "%2F"}, {"", "a/b%25"}, {"x", ""}} {
		exchange, key := parseDest(To(names[0], names[1]))
		if exchange != names[0] || key != names[1] {
			t.Errorf("%q became %q, read as %q %q", names, To(names[0], names[1]), exchange, key)
		}
	}
	if e, k := parseDest("50%off"); e != "" || k != "50%off" {
		t.Errorf("a lone %% was read as %q %q", e, k)
	}
}

// Without any login RabbitMQ's own default is used; one that is given, or that the client
// certificate is, replaces it as a whole.
func TestTheDefaultLogin(t *testing.T) {
	for name, c := range map[string]struct {
		url            string
		cfg            Config
		user, password string
	}{
		"none":             {"amqp://h", Config{}, "guest", "guest"},
		"of the URL":       {"amqp://shop:pw@h", Config{}, "shop", "pw"},
		"a user alone":     {"amqp://h", Config{User: "shop"}, "shop", ""},
		"of the code":      {"amqp://a:b@h", Config{User: "shop", Password: transport.Static("pw")}, "shop", "pw"},
		"the certificate":  {"amqps://h", Config{External: true}, "", ""},
		"by the URL's own": {"amqps://h?auth_mechanism=external", Config{}, "", ""},
	} {
		s := newSettings(c.url, c.cfg)
		password := ""
		if !s.Password.IsZero() {
			password, _ = s.Password.Get(t.Context())
		}
		if s.User != c.user || password != c.password || s.addr.Password != "" {
			t.Errorf("%s: %q with %q, want %q with %q (%v)", name, s.User, password, c.user, c.password, s.problem)
		}
	}
}
