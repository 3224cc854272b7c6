package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
	"github.com/longshore-go/longshore/transport/urls"
)

// queue is a world whose every TARGET is a memory queue "orders".
func queue(b *memory.Broker) world {
	return world{source: func(string, urls.Options) (transport.Source, error) {
		return b.Queue("orders", memory.QueueConfig{}), nil
	}}
}

func browse(ctx context.Context, src transport.Source, from string, n int) ([]*longshore.Delivery, string, error) {
	browser, ok := src.(transport.Browser)
	if !ok {
		return nil, "", errors.New("no browser")
	}
	return browser.Browse(ctx, from, n)
}

func bodies(t *testing.T, b *memory.Broker, name string) (out []string) {
	t.Helper()
	ds, _, err := browse(context.Background(), b.Queue(name, memory.QueueConfig{}), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		out = append(out, string(d.Key)+":"+string(d.Body))
	}
	return out
}

func TestPublishAFile(t *testing.T) {
	b := memory.New(memory.Config{})
	file := filepath.Join(t.TempDir(), "order.json")
	if err := os.WriteFile(file, []byte("{\"ID\":\n\"o-1\"}"), 0o644); err != nil {
		t.Fatal(err)
	}
	queue(b).run(t, "publish", "x", file, "--key", "c-1", "-H", "a=b").
		want(t, 0, "published 1 message to memory queue \"orders\" at memory\n", "")
	if got := strings.Join(bodies(t, b, "orders"), " "); got != "c-1:{\"ID\":\n\"o-1\"}" {
		t.Errorf("%q", got)
	}
}

func TestPublishLinesFromStandardInput(t *testing.T) {
	b := memory.New(memory.Config{})
	w := queue(b)
	w.in = "one\n\ntwo\n"
	w.run(t, "publish", "x", "--lines", "--to", "elsewhere").want(t, 0, "published 2 messages to memory destination \"elsewhere\" at memory\n", "")
	if got := strings.Join(bodies(t, b, "elsewhere"), " "); got != ":one :two" {
		t.Errorf("%q", got)
	}
}

// F-N14: --to NAME beside a target that is a local URL is a queue on its host.
func TestPublishToANameOnTheTargetsHost(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_SQS": ""} {
		t.Setenv(name, value)
	}
	server := sqstest.New(t)
	server.CreateQueue(t, "elsewhere", nil)
	target := "sqs://" + url.PathEscape(server.URL+"/000000000000/orders")
	w := world{in: "one\ntwo\n"}
	if got := w.run(t, "publish", target, "--lines", "--to", "elsewhere"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if n := len(server.Messages("elsewhere")); n != 2 {
		t.Errorf("%d messages", n)
	}
}

func TestPublishDryRunPublishesNothing(t *testing.T) {
	b := memory.New(memory.Config{})
	w := queue(b)
	w.in = "one"
	w.run(t, "publish", "x", "-", "--dry-run").want(t, 0, "would publish 1 message to memory queue \"orders\" at memory\n", "")
	if n := b.Inspect("orders").Published; n != 0 {
		t.Errorf("%d published", n)
	}
}

func TestPublishNothingIsAMistake(t *testing.T) {
	b := memory.New(memory.Config{})
	for name, c := range map[string]struct {
		in   string
		args []string
		err  string
	}{
		"empty pipe":    {"", []string{"publish", "x"}, "there is nothing to publish"},
		"no lines":      {"\n\n", []string{"publish", "x", "-", "-l"}, "there is nothing to publish"},
		"missing file":  {"", []string{"publish", "x", "/nonexistent/file"}, "no such file"},
		"wrong header":  {"a", []string{"publish", "x", "-", "-H", "novalue"}, "is not name=value"},
		"no TARGET":     {"a", []string{"publish"}, "TARGET is missing"},
		"three of them": {"a", []string{"publish", "a", "b", "c"}, "takes at most 2 arguments, not 3"},
	} {
		w := queue(b)
		w.in = c.in
		if got := w.run(t, c.args...); got.code != 2 || got.out != "" || !strings.Contains(got.err, c.err) || !strings.Contains(got.err, "help: ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := b.Inspect("orders").Published; n != 0 {
		t.Errorf("%d published", n)
	}
}

func TestPublishPartly(t *testing.T) {
	b := memory.New(memory.Config{})
	b.FailPublish("orders", 1, &longshore.Error{Code: longshore.CodeRefused, Op: "publish", Err: errors.New("full")})
	w := queue(b)
	w.in = "one\ntwo\n"
	got := w.run(t, "publish", "x", "-l", "--json")
	var res publishResult
	if err := json.Unmarshal([]byte(got.out), &res); err != nil || got.code != 1 || res.Published != 1 || res.Failed != 1 ||
		!strings.HasPrefix(got.err, `{"code":"refused"`) {
		t.Errorf("%v %+v", err, got)
	}
}

func TestPublishToABrokerThatDoesNotAnswer(t *testing.T) {
	b := memory.New(memory.Config{})
	b.Delay(memory.OpPublish, time.Hour)
	w := queue(b)
	w.in = "one"
	w.run(t, "publish", "x", "-", "--timeout", "20ms").
		want(t, 6, "", "error[timeout]: no answer in time\nhelp: raise --timeout, or look whether the broker is well\n")
}

// What was sent when the signal came may have arrived, and that is said.
func TestPublishInterrupted(t *testing.T) {
	b := memory.New(memory.Config{})
	b.Delay(memory.OpPublish, time.Hour)
	w := queue(b)
	w.in, w.signals = "one\ntwo\n", make(chan os.Signal, 1)
	w.wrote = once("publishing", func() { w.signals <- os.Interrupt })
	got := w.run(t, "publish", "x", "-", "-l", "-v")
	if want := "published 0 messages to memory queue \"orders\" at memory, 2 sent but not confirmed: they may have arrived\n"; got.code != 130 || got.out != want || strings.Contains(got.err, "error[") {
		t.Errorf("%+v", got)
	}
}

// once calls do when text was written.
func once(text string, do func()) func(string) {
	var first sync.Once
	return func(all string) {
		if strings.Contains(all, text) {
			first.Do(do)
		}
	}
}

// What peek prints as JSON, and what kcat -J prints, can be published; lines win over flags.
func TestPublishJSONLines(t *testing.T) {
	b := memory.New(memory.Config{})
	w := queue(b)
	w.in = `{"key":"c-1","body":"text","headers":{"tenant":"t,1","n":7},"id":"o-1"}
{"topic":"orders","partition":0,"offset":5,"tstype":"create","ts":1700000000000,"broker":1,"headers":["a","1","a","2"],"key":"c-2","payload":"kcat"}

{"n":3,"key_base64":"AP8=","body_base64":"/w==","headers":[{"name":"h","value":true}],"size":1,"position":9}
{"body":{"amount": 1.50}}
{"key":"","body":null}
`
	w.run(t, "publish", "x", "--json-lines", "--key", "from-flag", "-H", "tenant=flag", "-H", "app=cli").
		want(t, 0, "published 5 messages to memory queue \"orders\" at memory\n", "")
	ds, _, err := browse(t.Context(), b.Queue("orders", memory.QueueConfig{}), "", 10)
	if err != nil || len(ds) != 5 {
		t.Fatal(len(ds), err)
	}
	for i, want := range []struct{ key, body, headers string }{
		{"c-1", "text", "app=cli n=7 tenant=t,1"},
		{"c-2", "kcat", "a=1 a=2 app=cli tenant=flag"},
		{"\x00\xff", "\xff", "app=cli h=true tenant=flag"},
		{"from-flag", `{"amount": 1.50}`, "app=cli tenant=flag"},
		{"", "", "app=cli tenant=flag"},
	} {
		var hs []string
		for _, h := range ds[i].Headers {
			hs = append(hs, fmt.Sprintf("%s=%v", h.Name, h.Value))
		}
		slices.Sort(hs)
		if string(ds[i].Key) != want.key || string(ds[i].Body) != want.body || strings.Join(hs, " ") != want.headers {
			t.Errorf("%d: key %q, body %q, headers %q", i+1, ds[i].Key, ds[i].Body, hs)
		}
	}
	if ds[0].ID != "o-1" || ds[3].ContentType != "application/json" {
		t.Errorf("%q %q", ds[0].ID, ds[3].ContentType)
	}
	// There and back: what is peeked is published as it was.
	again := memory.New(memory.Config{})
	w2 := queue(again)
	w2.in = w.run(t, "peek", "x", "--json").out
	if got := w2.run(t, "publish", "x", "--json-lines"); got.code != 0 || !slices.Equal(bodies(t, again, "orders"), bodies(t, b, "orders")) {
		t.Errorf("%+v", got)
	}
}

// A line that cannot be read is named, with all others of its kind, and nothing is published.
func TestPublishNamesWrongLines(t *testing.T) {
	b := memory.New(memory.Config{})
	w := queue(b)
	w.in = "{\"body\":\"ok\"}\n{\"body\":\n\n[1]\n{\"boddy\":1}\n{\"key\":7}\n{\"body\":1,\"payload\":2}\n{\"headers\":{\"x\":[1]}}\n{\"body_base64\":\"§\"}\n{} {}\n"
	got := w.run(t, "publish", "x", "--json-lines")
	for _, want := range []string{"line 2: not JSON", "line 4: a JSON array, want an object", `line 5: unknown field "boddy"`, `line 6: "key" is a number`, "line 7: body, payload and body_base64 exclude each other",
		`line 8: header "x" is not a string`, "line 9: a field that ends in _base64 is not base64", "line 10: more than one JSON value", "help: nothing was published"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("no %q in\n%s", want, got.err)
		}
	}
	if got.code != 2 || got.out != "" || b.Inspect("orders").Published != 0 {
		t.Errorf("%+v", got)
	}
	w.in = "c-1:one\nno key\n"
	if got := w.run(t, "publish", "x", "--lines", "-K", ":"); got.code != 2 || !strings.Contains(got.err, `line 2: no key: ":" does not occur`) {
		t.Errorf("%+v", got)
	}
	w.in = "c-1:one:1\n:two\n"
	if got := w.run(t, "publish", "x", "--lines", "-K", ":"); got.code != 0 || strings.Join(bodies(t, b, "orders"), " ") != "c-1:one:1 :two" {
		t.Errorf("%+v %q", got, bodies(t, b, "orders"))
	}
}

// Lines that the broker refuses are named, those with one reason together.
func TestPublishNamesRefusedLines(t *testing.T) {
	b := memory.New(memory.Config{})
	b.FailPublish("orders", 2, &longshore.Error{Code: longshore.CodeRefused, Op: "publish", Err: errors.New("full")})
	w := queue(b)
	w.in = "\none\ntwo\nthree\n"
	if got := w.run(t, "publish", "x", "-l"); got.code != 1 || got.out != "published 1 message to memory queue \"orders\" at memory, 2 failed\n" || !strings.HasPrefix(got.err, "error[refused]: lines 2, 3: publish: full\n") {
		t.Errorf("%+v", got)
	}
	b.FailPublish("orders", 1, &longshore.Error{Code: longshore.CodeRefused, Op: "publish", Err: errors.New("full")})
	var res publishResult
	if got := w.run(t, "publish", "x", "-l", "--json"); json.Unmarshal([]byte(got.out), &res) != nil || !slices.Equal(res.FailedLines, []int{2}) {
		t.Errorf("%+v", got)
	}
}
