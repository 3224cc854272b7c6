package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/doctor"
)

// Without a database doctor checks the queue's settings. What loses messages is exit
// code 1.
func TestDoctorChecksSettings(t *testing.T) {
	asked := make(chan string, 10)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		asked <- user + ":" + password + " " + r.URL.EscapedPath()
		switch r.URL.EscapedPath() {
		case "/api/queues/team%2Fa/orders":
			_, _ = w.Write([]byte(`{"name":"orders","type":"quorum","durable":true,"messages_ready":3,"consumers":1,"arguments":{"x-queue-type":"quorum"}}`))
		case "/api/overview":
			_, _ = w.Write([]byte(`{"rabbitmq_version":"4.0.5"}`))
		case "/api/nodes":
			_, _ = w.Write([]byte(`[{"mem_alarm":false,"disk_free_alarm":false}]`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer api.Close()
	w := world{source: sourceOf, env: map[string]string{"AMQP_MANAGEMENT": strings.Replace(api.URL, "://", "://boss:secret@", 1)}}
	got := w.run(t, "doctor", "amqp://guest@localhost/team%2Fa?queue=orders", "--handler-time", "1h", "--json")
	var res doctorResult
	if err := json.Unmarshal([]byte(got.out), &res); err != nil || got.code != 1 {
		t.Fatalf("%v %+v", err, got)
	}
	levels := map[string]string{}
	for _, c := range res.Checks {
		levels[c.Area] = c.Level
	}
	if levels["broker"] != "ok" || levels["queue"] != "ok" || levels["limit"] != "bad" || levels["lease"] != "bad" {
		t.Errorf("%+v", res.Checks)
	}
	if first := <-asked; first != "boss:secret /api/queues/team%2Fa/orders" {
		t.Error(first)
	}
	got = w.run(t, "doctor", "amqp://guest@localhost/team%2Fa?queue=orders")
	if got.code != 1 || !strings.Contains(got.out, "delivery limit 20 without a dead-letter exchange") || strings.Contains(got.out+got.err, "secret") {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got.err, "asking the management API at "+api.URL+"\n") {
		t.Errorf("what was asked is not said: %q", got.err)
	}
	got = w.run(t, "doctor", "amqp://guest@localhost/?queue=absent")
	if got.code != 1 || !strings.Contains(got.out, `there is no queue "absent"`) {
		t.Errorf("%+v", got)
	}
}

// Port 15672 of the host belongs to another broker then.
func TestDoctorDoesNotGuessTheManagementAPIOfAnotherPort(t *testing.T) {
	w := world{source: sourceOf}
	got := w.run(t, "doctor", "amqp://guest:secret@localhost:5799/?queue=orders")
	if got.code != 2 || !strings.Contains(got.err, "5799") || !strings.Contains(got.err, "--management") || strings.Contains(got.err, "secret") {
		t.Errorf("%+v", got)
	}
	for target, want := range map[string]string{"amqp://u@h/": "http://u@h:15672", "amqp://u@h:5672/": "http://u@h:15672", "amqps://u@h:5671/": "http://u@h:15672"} {
		var p doctor.Patient
		if err := fromTarget(&p, target); err != nil || p.Management != want {
			t.Errorf("%s: %q, %v", target, p.Management, err)
		}
	}
}
