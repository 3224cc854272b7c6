package amqp

import (
	"fmt"
	"strings"
	"testing"
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
