package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const geheim = "s3cr3t"

// F-J04, F-N26: what is secret is in no problem, excerpt, view or error, however wrong the
// file is.
func TestSecretsAreNeverShown(t *testing.T) {
	for name, text := range map[string]string{
		"URL":                                "containers: {a: {source: \"amqp://app:s3cr3t@h:bad/?queue=q\"}}\n",
		"URL, plain":                         "containers:\n  a:\n    source: amqp://app:s3cr3t@h/?quee=q\n",
		"URL without a host":                 "containers:\n  a:\n    source: amqp://app:s3cr3t/?queue=q\n",
		"URL with odd password":              "containers:\n  a:\n    source: amqp://app:s3cr3t/s3cr3t?s3cr3t@h/?queue=q\n",
		"kafka":                              "containers:\n  a:\n    source: kafka://app:s3cr3t@k1:x/topic?group=g\n",
		"broker URL":                         "brokers: {r: {url: \"amqp://app:s3cr3t@h:x\", user: [1]}}\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"literal":                            "brokers: {r: {url: \"amqp://h\", password: s3cr3t, quark: 1}}\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"quoted":                             "brokers: {r: {url: \"amqp://h\", password: \"s3\\x633cr3ts3cr3t\", quark: 1}}\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"misspelt key":                       "brokers: {r: {url: \"amqp://h\", pasword: s3cr3t}}\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"wrong broker":                       "brokers: {r: {url: \"kafka://h\", password: s3cr3t}}\ncontainers: {a: {source: {broker: r, group: g, topics: [t]}}}\n",
		"wrong shape":                        "admin: {operators: s3cr3t}\ncontainers: {a: {source: mem://a}}\n",
		"a list":                             "admin: {operators: {anna: [s3cr3t]}}\ncontainers: {a: {source: mem://a}}\n",
		"twice":                              "admin: {operators: {anna: env:A, anna: s3cr3t}}\ncontainers: {a: {source: mem://a}}\n",
		"no scheme":                          "brokers: {r: {url: \"app:s3cr3t@h\"}}\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"source no scheme":                   "containers:\n  a:\n    source: app:s3cr3t@h\n    wrong: 1\n",
		"as a whole":                         "s3cr3t\n",
		"not YAML":                           "brokers: {r: {password: s3cr3t, url: `}}\n",
		"block":                              "brokers:\n  r:\n    url: amqp://h\n    password: |\n      s3cr3t\n    quark: 1\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"alias":                              "x: &p s3cr3t\nbrokers: {r: {url: \"amqp://h\", password: *p, quark: 1}}\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"endpoint":                           "telemetry: {traces: otlp, otlp: {endpoint: \"http://u:s3cr3t@otel:4318\", interval: 5s}}\ncontainers: {a: {source: mem://a}}\n",
		"endpoint's query":                   "telemetry: {traces: otlp, otlp: {endpoint: \"http://otel:4318?key=s3cr3t\"}}\ncontainers: {a: {source: mem://a}}\n",
		"endpoint of SQS":                    "brokers: {s: {url: \"sqs://\", region: r, endpoint: \"http://u:s3cr3t@h\", quark: 1}}\ncontainers: {a: {source: {broker: s, queue: q}}}\n",
		"a collector's header":               "telemetry: {traces: otlp, otlp: {headers: {x-key: s3cr3t, \"a b\": s3cr3t}}}\ncontainers: {a: {source: mem://a}}\n",
		"password like an alias":             "brokers:\n  r:\n    url: amqp://h\n    password: *s3cr3t\n    quark: 1\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"password like an anchor":            "brokers:\n  r:\n    url: amqp://h\n    password: &s3cr3t\n    quark: 1\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"password like a tag":                "brokers:\n  r:\n    url: amqp://h\n    password: !s3cr3t\n    quark: 1\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"password like a comment":            "brokers:\n  r:\n    url: amqp://h\n    password: #s3cr3t\n    quark: 1\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"password behind a blank and #":      "brokers:\n  r:\n    url: amqp://h\n    password: x #s3cr3t\n    quark: 1\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"password an anchor before it":       "brokers:\n  r:\n    url: amqp://h\n    password: &s3cr3t env:A\n    quark: 1\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"password a tag before it":           "brokers:\n  r:\n    url: amqp://h\n    password: !s3cr3t env:A\n    quark: 1\ncontainers: {a: {source: {broker: r, queue: q}}}\n",
		"a token as the user of an endpoint": "telemetry: {traces: otlp, otlp: {endpoint: \"http://s3cr3t@otel:4318\", interval: 5s}}\ncontainers: {a: {source: mem://a}}\n",
		"a token as the user of SQS's":       "brokers: {s: {url: \"sqs://\", region: r, endpoint: \"http://s3cr3t@h\", quark: 1}}\ncontainers: {a: {source: {broker: s, queue: q}}}\n",
		"short token":                        "admin: {operators: {anna: s3cr3t}, listen: nowhere}\ncontainers: {a: {source: mem://a}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, ps := nowhere("A="+geheim).parse("c.yaml", []byte(text), false)
			if c == nil && len(ps) == 0 {
				t.Fatal("nothing happened")
			}
			for i := range ps {
				all := fmt.Sprintf("%+v %v %v", ps[i], &ps[i], errors.Unwrap(&ps[i]))
				if strings.Contains(all, geheim) {
					t.Errorf("%s", all)
				}
			}
		})
	}
}

// The user and the password may be alike, and the password may be in the host.
func TestOnlyThePasswordIsMasked(t *testing.T) {
	for raw, want := range map[string]string{
		"amqp://guest:guest@guest/?queue=q": "amqp://guest:***@guest/?queue=q",
		"amqp://a:p@h/?queue=p":             "amqp://a:***@h/?queue=p",
		"amqp://a:@h":                       "amqp://a:@h",
		"kafka://h1:9092,h2:pw/t":           "kafka://h1:9092,h2:***/t",
		"amqp://h/q":                        "amqp://h/q",
	} {
		if got := maskURL(raw); got != want {
			t.Errorf("%s is shown as %s, want %s", raw, got, want)
		}
	}
	_, ps := nowhere().parse("c.yaml", []byte("containers: {a: {source: \"amqp://guest:guest@h:x/?queue=q\"}}\n"), true)
	if len(ps) != 2 || ps[0].Excerpt != "containers: {a: {source: \"amqp://guest:***@h:x/?queue=q\"}}" || ps[0].Column != 40 {
		t.Errorf("%+v", ps)
	}
}

const withSecrets = `version: 1
brokers:
  rabbit: {url: "amqps://app:s3cr3t@rabbit.internal/shop"}
  other: {url: "amqp://h", user: app, password: env:PW}
  kafka: {url: "kafka://k1:9092", sasl: {user: app, password: s3cr3t}}
admin: {operators: {anna: env:TOKEN}}
containers:
  orders: {source: {broker: rabbit, queue: orders}}
  more: {source: "amqp://app:s3cr3t@h/?queue=more"}
  url: {source: {url: "amqp://app@h/?queue=more", password: env:PW}}
  k: {source: {broker: kafka, group: g, topics: [t]}, dead_letter: {to: dlt}}
`

// F-J04
func TestShowHidesSecretsAndTellsWhereTheyAre(t *testing.T) {
	c, ps := nowhere("PW="+geheim, "TOKEN="+geheim+geheim+geheim).parse("c.yaml", []byte(withSecrets), false)
	if c == nil {
		t.Fatal(lines(ps))
	}
	out := Format(c.Show(true))
	if strings.Contains(out, geheim) || strings.Contains(fmt.Sprintf("%+v %#v", c.Show(true), c.Show(true)), geheim) {
		t.Error(out)
	}
	for _, want := range []string{"url: amqps://app:***@rabbit.internal/shop", "# env:PW, c.yaml:4", "source: amqp://app:***@h/?queue=more"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	warned := 0
	for _, w := range c.Warnings() {
		if w.Code == CodeSecretInFile {
			warned++
		}
	}
	if warned != 3 {
		t.Errorf("%d warnings of secrets in the file\n%s", warned, lines(c.Warnings()))
	}
}

func TestMissingSecretIsAWarningInCheckAndAnErrorInLoad(t *testing.T) {
	text := []byte("brokers: {r: {url: \"amqp://h\", password: env:PW}, k: {url: \"amqp://h\", password: file:no/such}}\ncontainers: {a: {source: {broker: r, queue: q}}}\n")
	c, ps := nowhere().parse("c.yaml", text, true)
	if c == nil || len(ps) != 2 || !ps[0].Warning || ps[0].Code != CodeSecretMissing || ps[1].Code != CodeSecretMissing {
		t.Error(lines(ps))
	}
	_, ps = nowhere().parse("c.yaml", text, false)
	if len(fatal(ps)) != 2 {
		t.Error(lines(ps))
	}
}

func TestRegionIsAWarningInCheck(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "none")
	text := []byte("containers: {a: {source: sqs://a}}\n")
	if c, ps := nowhere().parse("c.yaml", text, true); c == nil || len(ps) != 1 || !ps[0].Warning {
		t.Error(lines(ps))
	}
	if c, ps := nowhere().parse("c.yaml", text, false); c != nil || len(fatal(ps)) != 1 {
		t.Error(lines(ps))
	}
}

// F-N22: a password that looks like a reference can be given as it is.
func TestLiteralPasswords(t *testing.T) {
	const text = "brokers: {r: {url: \"amqp://app@localhost\", password: env:PW}}\ncontainers: {a: {source: {broker: r, queue: a}}}\n"
	for value, want := range map[string]string{"literal:env:x": "env:x", "literal:literal:x": "literal:x", "plain": "plain", "env:PW": "from PW"} {
		c, ps := Options{Environ: []string{"PW=from PW", "LONGSHORE_BROKERS_R_PASSWORD=" + value}}.parse("longshore.yaml", []byte(text), false)
		if len(ps) > 0 {
			t.Fatalf("%s: %s", value, lines(ps))
		}
		if got, err := c.loader.file.Brokers["r"].Password.Get(t.Context()); got != want || err != nil {
			t.Errorf("%s: %q, want %q: %v", value, got, want, err)
		}
	}
}
