package main

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// TARGET may be a container of the configuration file: its queue, or for dlq its dead letters.
func TestAContainersNameIsATarget(t *testing.T) {
	server := amqptest.New(t)
	declareOn(t, server, "orders", nil)
	declareOn(t, server, "orders.dlq", nil)
	file := configFile(t, "brokers:\n  rabbit: {url: \"amqp://guest@"+server.Addr+"\", password: env:PW}\n"+
		"containers:\n  orders:\n    source: {broker: rabbit, queue: orders}\n    dead_letter: {to: orders.dlq}\n"+
		"  byurl:\n    source: {url: \"amqp://guest@"+server.Addr+"/?queue=orders\", password: env:PW}\n    dead_letter: {to: orders.dlq}\n"+
		"  native:\n    source: {broker: rabbit, queue: orders}\n")
	w := world{in: "one", env: map[string]string{"PW": "guest", "LONGSHORE_CONFIG": file}}
	for _, c := range []struct {
		args, out string
		code      int
	}{
		{"publish orders", `published 1 message to rabbitmq queue "orders" at `, 0},
		{"publish byurl --to orders.dlq", `published 1 message to rabbitmq destination "orders.dlq" at `, 0},
		{"peek orders --force --format %v\\n", "one\n", 0},
		{"peek byurl --force --format %v\\n", "one\n", 0},
		{"dlq list orders --force", "id ", 0},
		{"dlq list byurl --force", "id ", 0},
		{"dlq purge orders --dry-run", `would remove 1 message from rabbitmq queue "orders.dlq" at `, 0},
		{"dlq purge orders --yes", `removed 1 message from rabbitmq queue "orders.dlq" at `, 0},
		{"doctor orders", "check ", 0},
	} {
		if got := w.run(t, strings.Fields(c.args)...); got.code != c.code || !strings.HasPrefix(got.out, c.out) {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
	for args, text := range map[string]string{
		"peek order":      `error[missing]: configuration ` + file + `: no container named "order"` + "\nhelp: did you mean \"orders\"?\n",
		"peek invoices":   `error[missing]: configuration ` + file + `: no container named "invoices"` + "\nhelp: add it below containers, which has orders, byurl, native\n",
		"dlq list native": `error[config]: find the dead letters of container "native": it has no dead_letter.to in `,
		"peek orders -c " + configFile(t, "contaners: {}\n"): `error[config]: find container "orders": `,
		"peek orders -c nowhere.yaml":                        "error[usage]: read the configuration nowhere.yaml",
	} {
		if got := w.run(t, strings.Fields(args)...); got.code != 2 || got.out != "" || !strings.HasPrefix(got.err, text) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	// The password of a broker that is not there is asked for when it is needed.
	delete(w.env, "PW")
	if got := w.run(t, "peek", "orders", "--force"); got.code != 6 || !strings.Contains(got.err, "PW is not set") {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "__complete", "peek", ""); !strings.HasPrefix(got.out, "orders\nbyurl\nnative\n") {
		t.Errorf("%+v", got)
	}
}

func TestANameWithoutAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := (world{}).run(t, "peek", "orders"); got.code != 2 || !strings.HasPrefix(got.err, `error[bad-address]: find "orders": not a URL, and no longshore.yaml here`) {
		t.Errorf("%+v", got)
	}
}
