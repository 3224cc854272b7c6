package config

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever follows a password in a file: there is a configuration or a problem, and
// the password is in none.
func FuzzParse(f *testing.F) {
	for _, rest := range []string{"containers: {a: {source: mem://a}}\n", "brokers: {r: {password: x}}\n", "containers: {a: {source: {broker: r, queue: q}}}\nquark: 1\n",
		"x: &p [*p]\n", "x: `\n", "admin: {listen: nowhere}\n"} {
		f.Add(rest)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		if strings.Contains(rest, geheim) {
			return
		}
		c, ps := nowhere().parse("c.yaml", []byte("brokers:\n  r: {url: \"amqp://h\", password: "+geheim+"}\n"+rest), false)
		if c == nil && len(ps) == 0 {
			t.Fatal("nothing happened")
		}
		for i := range ps {
			if all := fmt.Sprintf("%+v %v", ps[i], &ps[i]); strings.Contains(all, geheim) {
				t.Errorf("%q: %s", rest, all)
			}
		}
	})
}
