package config

import (
	"strings"
	"testing"
)

// F-N29: a Service named longshore-admin, or longshore-containers, changes nothing.
func TestVariablesOfThePlatformAreNotOurs(t *testing.T) {
	text := "containers: {a: {source: mem://a}}\nadmin: {}\n"
	for _, service := range []string{"LONGSHORE", "LONGSHORE_ADMIN", "LONGSHORE_CONTAINERS", "LONGSHORE_BROKERS", "LONGSHORE_CONTAINERS_A"} {
		env := []string{}
		for name, value := range map[string]string{"SERVICE_HOST": "10.0.0.7", "SERVICE_PORT": "8391", "SERVICE_PORT_HTTP": "8391", "SERVICE_PORT_WEB_UI": "1",
			"PORT": "tcp://10.0.0.7:8391", "PORT_8391_TCP": "tcp://10.0.0.7:8391", "PORT_8391_TCP_PROTO": "tcp", "PORT_8391_TCP_PORT": "8391",
			"PORT_8391_TCP_ADDR": "10.0.0.7", "PORT_53_UDP": "udp://10.0.0.7:53"} {
			env = append(env, service+"_"+name+"="+value)
		}
		if problems := checkText(t, text, env...); len(problems) > 0 {
			t.Errorf("%s: %v", service, problems[0].Error())
		}
	}
	for _, ours := range []string{"LONGSHORE_ADMIN_PORT=8391", "LONGSHORE_ADMIN_LISTENN=x", "LONGSHORE_ADMIN_SERVICE=x"} {
		if problems := checkText(t, text, ours); len(problems) != 1 || !strings.Contains(problems[0].Where, "LONGSHORE_ADMIN") {
			t.Errorf("%s: %v", ours, problems)
		}
	}
}
