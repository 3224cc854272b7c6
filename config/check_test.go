package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nowhere is an environment with nothing in it but these.
func nowhere(vars ...string) Options { return Options{Environ: append([]string{}, vars...)} }

// problems are what is wrong with a text, one line each: place, code.
func problems(t *testing.T, o Options, text string) []Problem {
	t.Helper()
	_, ps := o.parse("longshore.yaml", []byte(text), true)
	return ps
}

func lines(ps []Problem) string {
	var b strings.Builder
	for i := range ps {
		p := &ps[i]
		kind := "error"
		if p.Warning {
			kind = "warning"
		}
		fmt.Fprintf(&b, "%s %s[%s] %s; %s\n", p.Where, kind, p.Code, p.Text, p.Hint)
	}
	return b.String()
}

func TestTenMistakesAreTenErrors(t *testing.T) {
	const text = `version: 1
contaners: {}
brokers:
  rabbit: {url: "amqp://localhost", pasword: env:PW}
containers:
  orders:
    source: amqp://app@rabbit.internal:bad/shop?queue=orders
    workers: {min: 30, max: 1}
    drain_timeout: -5s
    order: by_kee
    max_bytes: big
    timeout: 30
  invoices:
    source: {broker: rabit, queue: invoices}
    redelivery: {max_attempts: many}
`
	ps := problems(t, nowhere("PW=x"), text)
	if n := len(fatal(ps)); n != 10 {
		t.Errorf("%d errors, want 10", n)
	}
	for _, want := range []string{
		"longshore.yaml:2:1 error[unknown-key] unknown key `contaners`; did you mean `containers`?",
		"longshore.yaml:4:37 error[unknown-key] unknown key `pasword`; did you mean `password`?",
		"longshore.yaml:7:40 error[bad-address] the port is not a number",
		"longshore.yaml:8:15 error[out-of-range] workers.min is 30; must be at most workers.max, which is 1",
		"longshore.yaml:9:20 error[out-of-range] drain_timeout is negative; 0s means the default, 20s",
		"longshore.yaml:10:12 error[unknown-value] order `by_kee` is not known; did you mean `by_key`?",
		"longshore.yaml:11:16 error[bad-value] max_bytes is `big`, which is not a size",
		"longshore.yaml:12:14 error[bad-value] timeout is `30`, which is not a time; it needs a unit: 30ms, 30s, 30m or 30h",
		"longshore.yaml:14:22 error[unknown-value] unknown broker `rabit`; did you mean `rabbit`?",
		"longshore.yaml:15:32 error[bad-value] redelivery.max_attempts is `many`",
	} {
		if !strings.Contains(lines(ps), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if t.Failed() {
		t.Log(lines(ps))
	}
}

func TestOneMistakeIsOneProblem(t *testing.T) {
	const rabbit = "brokers: {r: {url: \"amqp://localhost\"}, k: {url: \"kafka://k1:9092\"}, s: {url: \"sqs://\", region: eu-west-1}, m: {url: \"mem://\"}}\ncontainers:\n  orders:\n"
	for name, c := range map[string]struct{ text, want string }{
		"not YAML":                 {"containers: [a\n", "error[syntax]"},
		"a list":                   {"- a\n", "error[bad-value]"},
		"nothing":                  {"", "error[missing] no container"},
		"version":                  {"version: 2\n" + rabbit + "    source: mem://orders\n", "longshore.yaml:1:10 error[unknown-value] this version"},
		"twice":                    {rabbit + "    source: mem://orders\n    timeout: 1s\n    timeout: 2s\n", "longshore.yaml:6:5 error[duplicate-key] key `timeout` is there twice; the first one is in line 5"},
		"no source":                {rabbit + "    timeout: 1s\n", "longshore.yaml:3:3 error[missing] container `orders` has no source"},
		"no handler in files":      {rabbit + "    source: mem://orders\n    handler: {exec: [./pay]}\n", "error[unknown-key] unknown key `handler`; handlers are code: config.Handlers{\"orders\": …}"},
		"a key of another broker":  {rabbit + "    source: {broker: r, queue: orders, group: billing}\n", "longshore.yaml:4:40 error[unknown-key] `group` is for kafka, this is rabbitmq"},
		"no group":                 {rabbit + "    source: {broker: k, topics: [orders]}\n    dead_letter: {to: x}\n", "error[missing] source has no consumer group"},
		"no topics":                {rabbit + "    source: {broker: k, group: g}\n    dead_letter: {to: x}\n", "error[missing] source has no topics"},
		"no queue":                 {rabbit + "    source: {broker: r}\n", "error[missing] source has no queue"},
		"kafka keeps nothing":      {rabbit + "    source: {broker: k, group: g, topics: [orders]}\n", "longshore.yaml:3:3 error[missing] dead_letter is not set"},
		"to and policy":            {rabbit + "    source: mem://orders\n    dead_letter: {to: x, policy: keep}\n", "error[config] dead_letter has both dead_letter.to and dead_letter.policy"},
		"parameter":                {rabbit + "    source: mem://orders?prefech=3\n", "longshore.yaml:4:26 error[unknown-key] parameter \"prefech\" is unknown; did you mean \"prefetch\"?"},
		"prefetch":                 {rabbit + "    source: {broker: r, queue: orders, prefetch: 70000}\n", "longshore.yaml:4:40 error[out-of-range] prefetch is 70000; must be from 1 to 65535"},
		"visibility":               {rabbit + "    source: {broker: s, queue: orders, visibility_timeout: 1500ms}\n", "longshore.yaml:4:40 error[out-of-range] visibility_timeout is 1.5s; must be whole seconds from 1s to 12h"},
		"kafka acks":               {strings.Replace(rabbit, `k1:9092"`, `k1:9092", publish: {acks: none}`, 1) + "    source: {broker: r, queue: orders}\n", "publish.acks `none` is not known; known: all, leader"},
		"kafka compression":        {strings.Replace(rabbit, `k1:9092"`, `k1:9092", publish: {compression: [zst]}`, 1) + "    source: {broker: r, queue: orders}\n", "publish.compression has an unknown codec \"zst\"; use none, gzip, snappy, lz4, zstd"},
		"rebalance":                {rabbit + "    source: {broker: k, group: g, topics: [orders], rebalance_drain: 50s}\n    dead_letter: {to: x}\n", "longshore.yaml:4:53 error[out-of-range] rebalance_drain is 50s; must be at most half of rebalance_timeout, which is 1m0s"},
		"partition order":          {rabbit + "    source: {broker: r, queue: orders}\n    order: by_partition\n", "longshore.yaml:5:5 error[config] order is by_partition"},
		"breaker":                  {rabbit + "    source: mem://orders\n    breaker: {ratio: 3}\n", "longshore.yaml:5:15 error[out-of-range]"},
		"a policy's key":           {rabbit + "    source: mem://orders\n    autoscale: {policy: consecutive, hold: 1m}\n", "error[unknown-key] `hold` is for adaptive, this is consecutive"},
		"autoscale":                {rabbit + "    source: mem://orders\n    autoscale: {util: 3}\n", "error[out-of-range]"},
		"key of a key":             {rabbit + "    source: mem://orders\n    throttle: {per_key: {header: tenant}}\n", "error[missing] throttle.per_key needs either permits or rate"},
		"stop too short":           {rabbit + "    source: mem://orders\nlifecycle: {stop_timeout: 10s}\n", "longshore.yaml:5:27 error[drain-budget] stop_timeout is 10s"},
		"admin without a port":     {rabbit + "    source: mem://orders\nadmin: {listen: \"0.0.0.0\"}\n", "longshore.yaml:5:9 error[config] listen"},
		"metrics without a server": {rabbit + "    source: mem://orders\ntelemetry: {metrics: prometheus}\n", "longshore.yaml:5:22 error[missing]"},
		"camel case":               {rabbit + "    source: mem://orders\n    drainTimeout: 3s\n", "did you mean `drain_timeout`?"},
		"yes":                      {rabbit + "    source: mem://orders\n    start_paused: yes\n", "error[bad-value] start_paused is `yes`, which is neither true nor false; write true"},
		"days":                     {rabbit + "    source: mem://orders\n    timeout: 2d\n", "days are written in hours: 48h"},
		"no value":                 {rabbit + "    source: mem://orders\n    timeout:\n", "error[missing] timeout has no value"},
		"mistake in defaults":      {"defaults: {timeout: 5}\n" + rabbit + "    source: mem://orders\n  more:\n    source: mem://more\n", "longshore.yaml:1:21 error[bad-value] timeout"},
		"two documents":            {rabbit + "    source: mem://orders\n---\na: b\n", "error[syntax] the file has a second document"},
		"broker without url":       {"brokers: {r: {user: app}}\ncontainers: {orders: {source: mem://orders}}\n", "longshore.yaml:1:11 error[missing] broker `r` has no url"},
		"tabs":                     {"containers:\n\torders: {}\n", "longshore.yaml:2:1 error[syntax]"},
		"url and queue":            {rabbit + "    source: {url: \"amqp://localhost/?queue=a\", queue: b}\n", "`queue` does not go with url"},
		"password on SQS":          {rabbit + "    source: {url: \"sqs://a?region=eu-west-1\", password: env:PW}\n", "error[config] a password is given for a URL that has no login"},
		"declare without a word":   {rabbit + "    source: {broker: r, queue: orders, declare: {}}\n", "error[missing] declare is empty"},
		"declare of a wrong type":  {rabbit + "    source: {broker: r, queue: orders, declare: {type: quorom}}\n", "error[unknown-value] source.declare.type `quorom`"},
		"declare misspelt":         {rabbit + "    source: {broker: r, queue: orders, declare: {typ: quorum}}\n", "did you mean `type`?"},
		"Spring's word":            {rabbit + "    source: mem://orders\n    concurrency: 2\n", "error[unknown-key] unknown key `concurrency`; here it is `workers`"},
		"others' word":             {rabbit + "    source: mem://orders\n    circuit-breaker: {}\n", "here it is `breaker`"},
		"a rate with its unit":     {rabbit + "    source: mem://orders\n    throttle: {rate: 100/s}\n", "throttle.rate is `100/s`, which is not a number; write 100: it is per second"},
		"jitter":                   {rabbit + "    source: mem://orders\n    redelivery: {backoff: {jitter: 3}}\n", "must be from 0 to 1, or none"},
		"dead_letter empty":        {rabbit + "    source: mem://orders\n    dead_letter: {}\n", "error[missing] dead_letter is empty"},
		"not indented":             {"containers:\n  orders: {source: mem://orders}\n  source: mem://x\n", "longshore.yaml:3:11 error[bad-value] containers.source is one value, not a mapping; `source` belongs below a container: indent it"},
		"one value":                {"orders\n", "longshore.yaml:1:1 error[bad-value] the file is one value, not a mapping"},
		"middlewares":              {rabbit + "    source: mem://orders\n    middlewares: [log]\n", "each has a key of its own"},
		"own defaults of a source": {"defaults: {source: mem://a}\n" + rabbit + "    source: mem://orders\n", "error[unknown-key] defaults have no source"},
	} {
		t.Run(name, func(t *testing.T) {
			ps := problems(t, nowhere("PW=x"), c.text)
			if len(fatal(ps)) != 1 || !strings.Contains(lines(ps), c.want) {
				t.Errorf("want one error with %q, got\n%s", c.want, lines(ps))
			}
		})
	}
}

func TestMistakesInVariables(t *testing.T) {
	const text = "containers: {my-orders: {source: mem://orders}, my.orders: {source: mem://more}, audit: {source: mem://audit}}\n"
	for name, c := range map[string]struct{ env, want string }{
		"value":    {"LONGSHORE_CONTAINERS_AUDIT_WORKERS_MAX=many", "env LONGSHORE_CONTAINERS_AUDIT_WORKERS_MAX error[bad-value] workers.max is `many`"},
		"unknown":  {"LONGSHORE_CONTAINERS_AUDIT_WORKER_MAX=3", "error[unknown-key] this variable sets nothing; did you mean LONGSHORE_CONTAINERS_AUDIT_WORKERS_MAX?"},
		"clash":    {"LONGSHORE_CONTAINERS_MY_ORDERS_TIMEOUT=3s", "it may mean containers.my-orders.timeout and containers.my.orders.timeout"},
		"empty":    {"LONGSHORE_CONTAINERS_AUDIT_TIMEOUT=", "error[missing] it is empty"},
		"in a URL": {"LONGSHORE_CONTAINERS_AUDIT_SOURCE_QUEUE=q", "the source is one URL, which has no queue; set LONGSHORE_CONTAINERS_AUDIT_SOURCE"},
	} {
		t.Run(name, func(t *testing.T) {
			ps := problems(t, nowhere(c.env), text)
			if len(fatal(ps)) != 1 || !strings.Contains(lines(ps), c.want) {
				t.Errorf("want one error with %q, got\n%s", c.want, lines(ps))
			}
		})
	}
	// One that only looks like ours may be somebody else's.
	ps := problems(t, nowhere("LONGSHORE_CONTAINER_AUDIT_TIMEOUT=3s", "LONGSHORE_DEFAULT_LOG_LEVEL=debug", "LONGSHORE_TEST_X=1"), text)
	if len(ps) != 2 || len(fatal(ps)) != 0 || !strings.Contains(lines(ps), "did you mean LONGSHORE_CONTAINERS_AUDIT_TIMEOUT?") || !strings.Contains(lines(ps), "did you mean LONGSHORE_DEFAULTS_LOG_LEVEL?") {
		t.Errorf("%s", lines(ps))
	}
	if ps := problems(t, nowhere("LONGSHORE_ADMIN=a", "LONGSHORE_TOKEN=b", "LONGSHORE_BROKERS=required", "LONGSHORE_CONFIG=c"), text); len(ps) > 0 {
		t.Errorf("variables of the command are not ours: %s", lines(ps))
	}
}

func TestErrorsOfLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("containers:\n  a: {source: mem://a, order: x}\n  b: {source: mem://b, timeout: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := nowhere().Load(file)
	if !errors.Is(err, CodeUnknownValue) || !errors.Is(err, CodeBadValue) {
		t.Errorf("%v", err)
	}
	var p *Problem
	if !errors.As(err, &p) || p.Line != 2 || p.Path != "containers.a.order" {
		t.Errorf("%+v", p)
	}
	var e *longshore.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "longshore: "+file+":2:31: order `x` is not known; known: ") {
		t.Errorf("%v", err)
	}
	if _, err := nowhere().Load(filepath.Join(t.TempDir(), "no.yaml")); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("%v", err)
	}
}

// One pass names all mistakes: what is behind another mistake too.
func TestOnePassNamesEverything(t *testing.T) {
	const head = "brokers: {r: {url: \"amqp://localhost\"}, k: {url: \"kafka://k1:9092\"}, s: {url: \"sqs://\", region: eu-west-1}}\ncontainers:\n  orders:\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a wrong parameter and no dead_letter": {"    source: kafka://k1:9092/orders?group=g&windw=3\n", []string{`parameter "windw" is unknown`, "dead_letter is not set"}},
		"a wrong value and no dead_letter":     {"    source: kafka://k1:9092/orders?group=g&start=earlest\n", []string{`[unknown-value] parameter "start" has an unknown value; did you mean "earliest"?`, "dead_letter is not set"}},
		"two behind each other":                {"    source: amqp://h/?queue=q&declare=quorumm&prefetch=70000\n", []string{`did you mean "quorum"? it must be quorum or classic`, "prefetch is 70000"}},
		"a password's parameter and a queue":   {"    source: amqp://h/?queue=q&auth_mechanism=extrnal&prefetch=x\n", []string{`parameter "prefetch"`, `[unknown-value] parameter "auth_mechanism" has an unknown value; did you mean "external"?`}},
		"a broker that is wrong":               {"    source: {broker: k, group: g, topics: [orders]}\n", []string{"port", "dead_letter is not set"}},
		"no group and no dead_letter":          {"    source: {broker: k, topics: [orders]}\n", []string{"source has no consumer group", "dead_letter is not set"}},
		"no queue and a prefetch":              {"    source: {broker: r, prefetch: 70000}\n", []string{"source has no queue", "prefetch is 70000"}},
		"a URL without a group, and native":    {"    source: kafka://k1:9092/orders\n    dead_letter: {policy: native}\n", []string{`parameter "group" is missing`, "dead_letter.policy native does not go with kafka"}},
		"a wrong parameter and a loop":         {"    source: amqp://h/?queue=orders&colour=x\n    dead_letter: {to: orders}\n", []string{`parameter "colour"`, `dead_letter.to "orders" does not go with`}},
		"a source and the stop":                {"    source: kafka://k1:9092/orders\n    dead_letter: {to: x}\n    drain_timeout: 1m\nlifecycle: {stop_timeout: 30s}\n", []string{`parameter "group" is missing`, "[drain-budget]"}},
		"workers and the stop":                 {"    source: mem://orders\n    workers: {min: 3, max: 1}\n    drain_timeout: 1m\nlifecycle: {stop_timeout: 30s}\n", []string{"workers.min is 3", "[drain-budget]"}},
		"partition order and a parameter":      {"    source: amqp://h/?queue=orders&colour=x\n    order: by_partition\n", []string{`parameter "colour"`, "order is by_partition"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := head + c.text
			if strings.HasPrefix(name, "a broker") {
				text = strings.Replace(text, "k1:9092", "k1:notaport", 1)
			}
			ps := problems(t, nowhere("PW=x"), text)
			if len(ps) != len(c.want) {
				t.Errorf("%d problems, want %d", len(ps), len(c.want))
			}
			for _, want := range c.want {
				if !strings.Contains(lines(ps), want) {
					t.Errorf("not told: %s", want)
				}
			}
			if t.Failed() {
				t.Log("\n" + lines(ps))
			}
		})
	}
	ps := problems(t, nowhere("PW=x"), `brokers:
  k: {url: "kafka://k1:9092/orders", tls: {ca_file: no.pem, cert_file: x.pem}, sasl: {mechanism: plain}}
  s: {url: "sqs://eu", access_key_id: A}
containers: {a: {source: mem://a}}
`)
	for _, want := range []string{"2:38 error[out-of-range] tls does not go with a url that begins with kafka", "something after its hosts", "tls.ca_file cannot be read", "tls.cert_file and tls.key_file go together", "write sqs:// alone", "is set without secret_access_key"} {
		if !strings.Contains(lines(ps), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if t.Failed() {
		t.Log("\n" + lines(ps))
	}
}

// A word that is none of those known is told with the nearest one and with all of them, in
// keys and in URLs, of each transport.
func TestEveryWordIsSuggested(t *testing.T) {
	const head = "brokers: {r: {url: \"amqp://localhost\"}, k: {url: \"kafka://k1:9092\"}, s: {url: \"sqs://\", region: eu-west-1}}\ncontainers:\n  orders:\n    dead_letter: {to: dead}\n"
	for text, want := range map[string]string{
		"    source: {broker: r, queue: q, declare: {type: quorumm}}\n":                         "did you mean `quorum`? also: classic",
		"    source: {broker: r, exchange: e, broadcast: true, kind: fanuot}\n":                 "did you mean `fanout`? also: direct, topic, headers",
		"    source: {broker: r, queue: q, declare: {bindings: [{exchange: e, kind: topc}]}}\n": "did you mean `topic`? also: direct, fanout, headers",
		"    source: {broker: k, group: g, topics: [t], start: lattest}\n":                      "did you mean `latest`? also: earliest, 2026-01-02T15:04:05Z",
		"    source: {broker: k, group: g, topics: [t], protocol: consumr}\n":                   "did you mean `consumer`? also: classic",
		"    source: {broker: k, group: g, topics: [t], isolation: committed}\n":                "known: read_committed, read_uncommitted",
		"    source: {broker: k, group: g, topics: [t], out_of_range: fial}\n":                  "did you mean `fail`? also: earliest, latest",
		"    source: {broker: s, queue: q, envelope: eventbrige}\n":                             "did you mean `eventbridge`? also: sns",
		"    source: mem://q\n    autoscale: {policy: adaptiv}\n":                               "did you mean `adaptive`? also: consecutive, spring, fixed",
		"    source: mem://q\n    settle: manuel\n":                                             "did you mean `manual`? also: auto",
		"    source: mem://q\n    log_level: wran\n":                                            "did you mean `warn`? also: debug, info, error",
		"    source: mem://q\ntelemetry: {traces: otlpp}\n":                                     "did you mean `otlp`? also: otel",
		"    source: amqp://h/?queue=q&declare=quorumm\n":                                       `did you mean "quorum"? it must be quorum or classic`,
		"    source: amqp://h/?exchange=e&kind=fanuot\n":                                        `did you mean "fanout"? it must be direct or fanout or topic or headers`,
		"    source: amqp://h/?queue=q&auth_mechanism=plian\n":                                  `did you mean "plain"?`,
		"    source: kafka://k1/t?group=g&start=lattest\n":                                      `did you mean "latest"? it must be earliest or latest or a time such as`,
		"    source: kafka://k1/t?group=g&protocol=consumr\n":                                   `did you mean "consumer"? it must be classic or consumer`,
		"    source: kafka://u:p@k1/t?group=g&sasl=plan\n":                                      `did you mean "plain"? it must be plain or`,
		"    source: kafka://k1/t?group=g&compression=zst\n":                                    `did you mean "zstd"? it must be none or gzip or snappy or lz4 or zstd`,
		"    source: kafka://k1/t?group=g&acks=none\n":                                          `it must be all or leader`,
		"    source: kafka://k1/t?broadcast=ture\n":                                             `did you mean "true"? it must be true or false`,
		"    source: sqs://q?region=r&envelope=sms\n":                                           `did you mean "sns"? it must be sns or eventbridge`,
		"    source: sqs://q?region=r&declare=ture\n":                                           `did you mean "true"? it must be true or false`,
		"    source: {url: \"sqs://q?region=r&browse_counts=flase\"}\n":                         `did you mean "false"? it must be true or false`,
	} {
		ps := problems(t, nowhere(), head+text)
		found := false
		for i := range ps {
			found = found || ps[i].Code == CodeUnknownValue && strings.Contains(ps[i].Hint+ps[i].Text, want) && ps[i].Line > 3
		}
		if !found {
			t.Errorf("%s: want %s\n%s", text, want, lines(ps))
		}
	}
}
