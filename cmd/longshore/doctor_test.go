package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/doctor"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// managementOf is the HTTP API of a RabbitMQ cluster; asked hears of each request.
func managementOf(t *testing.T, cluster string, asked func(string)) string {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		asked(user + ":" + password + " " + r.URL.EscapedPath())
		switch r.URL.EscapedPath() {
		case "/api/queues/team%2Fa/orders":
			_, _ = w.Write([]byte(`{"name":"orders","type":"quorum","durable":true,"messages_ready":3,"consumers":1,"arguments":{"x-queue-type":"quorum"}}`))
		case "/api/overview":
			_, _ = w.Write([]byte(`{"rabbitmq_version":"4.0.5","cluster_name":"` + cluster + `"}`))
		case "/api/nodes":
			_, _ = w.Write([]byte(`[{"mem_alarm":false,"disk_free_alarm":false}]`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(api.Close)
	return api.URL
}

// teamA is a broker with the queue orders in the virtual host team/a.
func teamA(t *testing.T) (target string) {
	t.Helper()
	server := amqptest.New(t, amqptest.Config{VHosts: []string{"team/a"}})
	declareOn(t, server, "orders", nil)
	return server.URL + "?queue=orders"
}

func withPassword(api string) string { return strings.Replace(api, "://", "://boss:secret@", 1) }

// Without a database doctor checks the queue's settings. What loses messages is exit
// code 1.
func TestDoctorChecksSettings(t *testing.T) {
	var asked []string
	api := managementOf(t, "amqptest", func(s string) { asked = append(asked, s) })
	target := teamA(t)
	w := world{env: map[string]string{"AMQP_MANAGEMENT": withPassword(api)}}
	got := w.run(t, "doctor", target, "--handler-time", "1h", "--json")
	var res doctorResult
	if err := json.Unmarshal([]byte(got.out), &res); err != nil || got.code != 1 {
		t.Fatalf("%v %+v", err, got)
	}
	levels := map[string]string{}
	for _, c := range res.Checks {
		levels[c.Area] = c.Level
	}
	if levels["broker"] != "ok" || levels["limit"] != "bad" || levels["lease"] != "bad" {
		t.Errorf("%+v", res.Checks)
	}
	// The counts are the broker's own: those of the management API are up to 5 s old.
	if !strings.Contains(got.out, "quorum, 0 ready, 0 unacknowledged, 0 consumers") {
		t.Errorf("%+v", res.Checks)
	}
	if len(asked) < 2 || asked[1] != "boss:secret /api/queues/team%2Fa/orders" {
		t.Error(asked)
	}
	got = w.run(t, "doctor", target)
	if got.code != 1 || !strings.Contains(got.out, "delivery limit 20 without a dead-letter exchange") || strings.Contains(got.out+got.err, "secret") {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got.err, "asking the management API at "+api+"\n") {
		t.Errorf("what was asked is not said: %q", got.err)
	}
	got = w.run(t, "doctor", strings.Replace(target, "orders", "absent", 1))
	if got.code != 1 || !strings.Contains(got.out, `no queue "absent"`) {
		t.Errorf("%+v", got)
	}
}

// A management API of another cluster is not believed, whoever named it.
func TestDoctorTellsAManagementAPIOfAnotherBroker(t *testing.T) {
	api := managementOf(t, "rabbit@elsewhere", func(string) {})
	target := teamA(t)
	w := world{env: map[string]string{"AMQP_MANAGEMENT": withPassword(api)}}
	got := w.run(t, "doctor", target)
	const other = ` is of cluster "rabbit@elsewhere", and TARGET is in cluster "amqptest"`
	if got.code != 0 || !strings.Contains(got.out, "unknown") || !strings.Contains(got.out, other) || strings.Contains(got.out, "4.0.5") || strings.Contains(got.out+got.err, "secret") {
		t.Errorf("by AMQP_MANAGEMENT: %+v", got)
	}
	got = w.run(t, "doctor", target, "--management", withPassword(api))
	if got.code != 2 || got.out != "" || !strings.Contains(got.err, "error[config]: ask RabbitMQ's management API: the one at ") || !strings.Contains(got.err, other) || strings.Contains(got.err, "secret") {
		t.Errorf("by --management: %+v", got)
	}
	got = w.run(t, "doctor", "amqp://guest:secret@127.0.0.1:1/?queue=orders")
	if got.code != 6 || got.out != "" || !strings.Contains(got.err, "error[unreachable]: ") || strings.Contains(got.err, "secret") {
		t.Errorf("TARGET does not answer: %+v", got)
	}
	// Who names the API for this queue may have no way to the broker itself.
	got = w.run(t, "doctor", "amqp://guest:secret@127.0.0.1:1/team%2Fa?queue=orders", "--management", withPassword(api))
	if got.code != 1 || !strings.Contains(got.out, "RabbitMQ 4.0.5") || !strings.Contains(got.out, "delivery limit 20") {
		t.Errorf("TARGET does not answer, --management does: %+v", got)
	}
}

// At a port of its own a broker, amqp-server for example, tells what AMQP tells; port
// 15672 of the host belongs to another one then.
func TestDoctorWithoutAManagementAPI(t *testing.T) {
	w := world{}
	target := teamA(t)
	got := w.run(t, "doctor", target)
	if got.code != 0 || !strings.Contains(got.out, `RabbitMQ 3.10.8, cluster "amqptest"`) || !strings.Contains(got.out, "0 ready, 0 consumers") || !strings.Contains(got.out, "--management http") || got.err != "" {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "doctor", strings.Replace(target, "orders", "absent", 1)); got.code != 1 || !strings.Contains(got.out, `no queue "absent"`) {
		t.Errorf("%+v", got)
	}
	for target, want := range map[string]string{"amqp://u@h/": "http://u@h:15672", "amqp://u@h:5672/": "http://u@h:15672", "amqps://u@h:5671/": "https://u@h:15671", "amqp://u@h:5799/": ""} {
		p := doctor.Patient{From: doctor.Ambient}
		if err := (&doctorCommand{app: &app{}}).fromTarget(t.Context(), &p, target); err != nil || p.Management != want || p.From != doctor.Guessed {
			t.Errorf("%s: %q, %v", target, p.Management, err)
		}
	}
}

// What the file says about a container's dead letters counts, also where they go to an
// exchange or are kept: there is nothing to set.
func TestDoctorKnowsWhatAContainerDoesWithDeadLetters(t *testing.T) {
	server := amqptest.New(t, amqptest.Config{VHosts: []string{"team/a"}})
	declareOn(t, server, "orders", nil)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]string{
			"/api/queues/team%2Fa/orders": `{"name":"orders","type":"classic","durable":true,"consumers":1,"arguments":{}}`,
			"/api/overview":               `{"rabbitmq_version":"3.10.8","cluster_name":"amqptest"}`, "/api/nodes": `[]`,
		}
		_, _ = w.Write([]byte(answers[r.URL.EscapedPath()]))
	}))
	t.Cleanup(api.Close)
	text := "brokers:\n  rabbit: {url: \"" + server.URL + "\"}\ncontainers:\n"
	for name, dead := range map[string]string{"queue": "{to: orders.dlq}", "exchange": "{to: dead/orders}", "kept": "{policy: keep}", "lost": "{policy: discard}"} {
		text += "  " + name + ": {source: {broker: rabbit, queue: orders}, dead_letter: " + dead + "}\n"
	}
	text += "  silent: {source: {broker: rabbit, queue: orders}}\n"
	w := world{env: map[string]string{"AMQP_MANAGEMENT": withPassword(api.URL), "LONGSHORE_CONFIG": configFile(t, text)}}
	for _, name := range []string{"queue", "exchange", "kept", "lost", "silent"} {
		got := w.run(t, "doctor", name)
		if warned := strings.Contains(got.out, "no dead-letter exchange"); got.code != 0 || warned != (name == "silent") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
