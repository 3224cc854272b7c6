package amqp

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// F-K02
func TestWhichVhostAPathMeans(t *testing.T) {
	for path, want := range map[string]string{
		"": "/", "/": "/", "/%2f": "/", "/%2F": "/", "//": "/", "/foo": "foo", "/%2Ffoo": "/foo", "/a%2Fb": "a/b", "/a/b": "a/b",
		"/with space": "with space", "/with%20space": "with space", "/ümlaut": "ümlaut", "/%C3%BC": "ü", "/a+b": "a+b",
	} {
		a, err := parseURL("amqp://host" + path)
		if err != nil || a.vhost != want {
			t.Errorf("path %q: vhost %q, %v; want %q", path, a.vhost, err, want)
		}
	}
}

// F-K03
func TestAddressesOfNodes(t *testing.T) {
	legal := map[string]string{
		"host": "host:5672", "host:1234": "host:1234", "127.0.0.1": "127.0.0.1:5672", "127.0.0.1:1": "127.0.0.1:1",
		"::1": "[::1]:5672", "[::1]": "[::1]:5672", "[::1]:9092": "[::1]:9092", "fe80::1%eth0": "[fe80::1%eth0]:5672",
		"[fe80::1%eth0]:5": "[fe80::1%eth0]:5", "[fe80::1%25eth0]": "[fe80::1%eth0]:5672", "a-b.c_d.example": "a-b.c_d.example:5672",
	}
	for in, want := range legal {
		if n, err := parseNode(in, false); err != nil || n.String() != want {
			t.Errorf("%q: %s, %v; want %s", in, n, err, want)
		}
	}
	for _, in := range []string{"", " host", "host ", "ho st", "host:", "host:x", "host:0", "host:65536", "host:1:2", "[::1", "::1]:5",
		"[::1]x", "[::1]:", "[host]:1", "[127.0.0.1]:1", ":5672", "amqp://host", "user@host", "host/vhost", "host?x", "a%20b"} {
		if n, err := parseNode(in, false); err == nil {
			t.Errorf("%q was taken as %s", in, n)
		}
	}
	if n, _ := parseNode("host", true); n.port != "5671" {
		t.Errorf("TLS without a port dials %s", n.port)
	}
}

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

// F-K01: any character in user, password and vhost, encoded and raw. A raw one
// works or is refused with advice, and never quoted.
func TestAnyCharacterInTheURL(t *testing.T) {
	chars := []rune("äß€日😀")
	for c := rune(32); c < 127; c++ {
		chars = append(chars, c)
	}
	for _, c := range chars {
		secret := "canary" + string(c) + "xy" // not hex: a raw % before hex digits is an encoding
		for _, encode := range []func(string) string{encode1, url.QueryEscape} {
			text := strings.ReplaceAll(encode(secret), "+", "%20")
			a, err := parseURL("amqp://" + text + ":" + text + "@host:1/" + text)
			if err != nil || a.user != secret || a.password != secret || a.vhost != secret || a.nodes[0].String() != "host:1" {
				t.Errorf("encoded %q: user %q password %q vhost %q at %v, %v", c, a.user, a.password, a.vhost, a.nodes, err)
			}
		}
		a, err := parseURL("amqp://user:" + secret + "@host:1/v")
		switch {
		case err == nil && (a.password != secret || a.user != "user" || a.nodes[0].String() != "host:1" || a.vhost != "v"):
			t.Errorf("raw %q was read as user %q password %q at %v vhost %q", c, a.user, a.password, a.nodes, a.vhost)
		case err != nil && (!strings.Contains(err.Error(), "percent-encode") || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "xy")):
			t.Errorf("raw %q: %v", c, err)
		}
	}
}

// encode1 encodes every byte.
func encode1(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

func FuzzURL(f *testing.F) {
	f.Add("amqp://user:canary@host:5672/vhost?heartbeat=5")
	f.Add("amqps://user:ca@nary@[::1]:1,b/%2f")
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := parseURL(s); err == nil && len(a.nodes) == 0 {
			t.Errorf("%q has no node and no error", s)
		}
	})
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
