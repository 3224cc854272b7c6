package conn

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
		a, err := ParseURL("amqp://host" + path)
		if err != nil || a.VHost != want {
			t.Errorf("path %q: vhost %q, %v; want %q", path, a.VHost, err, want)
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
		if n, err := ParseNode(in, false); err != nil || n.String() != want {
			t.Errorf("%q: %s, %v; want %s", in, n, err, want)
		}
	}
	for _, in := range []string{"", " host", "host ", "ho st", "host:", "host:x", "host:0", "host:65536", "host:1:2", "[::1", "::1]:5",
		"[::1]x", "[::1]:", "[host]:1", "[127.0.0.1]:1", ":5672", "amqp://host", "user@host", "host/vhost", "host?x", "a%20b"} {
		if n, err := ParseNode(in, false); err == nil {
			t.Errorf("%q was taken as %s", in, n)
		}
	}
	if n, _ := ParseNode("host", true); n.Port != "5671" {
		t.Errorf("TLS without a port dials %s", n.Port)
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
			a, err := ParseURL("amqp://" + text + ":" + text + "@host:1/" + text)
			if err != nil || a.User != secret || a.Password != secret || a.VHost != secret || a.Nodes[0].String() != "host:1" {
				t.Errorf("encoded %q: user %q password %q vhost %q at %v, %v", c, a.User, a.Password, a.VHost, a.Nodes, err)
			}
		}
		a, err := ParseURL("amqp://user:" + secret + "@host:1/v")
		switch {
		case err == nil && (a.Password != secret || a.User != "user" || a.Nodes[0].String() != "host:1" || a.VHost != "v"):
			t.Errorf("raw %q was read as user %q password %q at %v vhost %q", c, a.User, a.Password, a.Nodes, a.VHost)
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
		if a, err := ParseURL(s); err == nil && len(a.Nodes) == 0 {
			t.Errorf("%q has no node and no error", s)
		}
	})
}
