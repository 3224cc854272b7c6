package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/urls"
)

func filled(t *testing.T, msgs ...*longshore.Message) (world, *memory.Broker) {
	t.Helper()
	b := memory.New(memory.Config{})
	b.Declare("orders")
	pub, err := b.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if len(msgs) > 0 {
		if err := pub.Publish(context.Background(), "orders", msgs...); err != nil {
			t.Fatal(err)
		}
	}
	return queue(b), b
}

// F-I05: nothing that a terminal would act upon is shown to one.
func TestPeek(t *testing.T) {
	w, b := filled(t, &longshore.Message{Key: []byte("c-91"), ContentType: "application/json", Body: []byte(`{"id":"o-17"}`)},
		&longshore.Message{Body: []byte("\x1b]0;owned\x07\nx")}, &longshore.Message{Body: []byte("third")})
	w.run(t, "peek", "x", "-n", "2").want(t, 0,
		"#  key   at  type              size  body\n"+
			"1  c-91  -   application/json  13 B  {\"id\":\"o-17\"}\n"+
			"2  -     -   -                 12 B  \\x1b]0;owned\\x07\\nx\n", "")
	if info := b.Inspect("orders"); info.Ready != 3 {
		t.Errorf("%+v", info)
	}
}

func TestPeekByFormat(t *testing.T) {
	w, _ := filled(t, &longshore.Message{Key: []byte("k"), Body: []byte("\x1b[31mred")})
	w.run(t, "peek", "x", "--format", `%k\t%v`).want(t, 0, "k\t\x1b[31mred\n", "") // a pipe gets the bytes
	w.terminal = true
	w.run(t, "peek", "x", "--format", `%k\t%v`).want(t, 0, "k\t\\x1b[31mred\n", "")
	if got := w.run(t, "peek", "x", "--format", "%z"); got.code != 2 || !strings.Contains(got.err, `the format has "%z"`) {
		t.Errorf("%+v", got)
	}
}

func TestPeekInJSON(t *testing.T) {
	w, _ := filled(t, &longshore.Message{Body: []byte("a")}, &longshore.Message{Key: []byte{0xff}, Body: []byte("b")})
	lines := strings.Split(strings.TrimSpace(w.run(t, "peek", "x", "--json").out), "\n")
	if len(lines) != 2 {
		t.Fatalf("%q", lines)
	}
	var doc struct {
		N         int
		Body      string
		KeyBase64 string `json:"key_base64"`
	}
	if err := json.Unmarshal([]byte(lines[1]), &doc); err != nil || doc.N != 2 || doc.Body != "b" || doc.KeyBase64 != "/w==" {
		t.Errorf("%v %+v", err, doc)
	}
}

func TestPeekIntoAnEmptyQueue(t *testing.T) {
	w, _ := filled(t)
	w.run(t, "peek", "x").want(t, 0, "", "no messages wait in memory queue \"orders\" at memory\n")
	w.run(t, "peek", "x", "-q", "--json").want(t, 0, "", "")
	if got := w.run(t, "peek", "x", "-n", "0"); got.code != 2 {
		t.Errorf("%+v", got)
	}
}

func TestPeekIntoAQueueThatDoesNotExist(t *testing.T) {
	got := queue(memory.New(memory.Config{})).run(t, "peek", "x")
	if got.code != 1 || !strings.HasPrefix(got.err, `error[not-found]: open memory queue "orders"`) {
		t.Errorf("%+v", got)
	}
}

// costly refuses to be looked into unless told that the cost is known.
type costly struct {
	transport.Source
	counts bool
}

func (s costly) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	if !s.counts {
		return nil, "", &longshore.Error{Code: longshore.CodeUnsupported, Op: "browse", Err: errors.New("each look counts"), Hint: "use --force"}
	}
	return browse(ctx, s.Source, from, n)
}

func (s costly) BrowseCost() string {
	if s.counts {
		return "each look has counted"
	}
	return ""
}

func TestPeekWhereLookingHasACost(t *testing.T) {
	w, b := filled(t, &longshore.Message{Body: []byte("a")})
	w.source = func(_ string, o urls.Options) (transport.Source, error) {
		return costlyCounted{costlyOutlet{costly{b.Queue("orders", memory.QueueConfig{}), o.BrowseCounts}}, 1}, nil
	}
	w.run(t, "peek", "x").want(t, 1, "", "error[unsupported]: browse: each look counts\nhelp: --force looks anyway\n")
	// At a terminal it names the cost and the count, and asks.
	w.typing = strings.NewReader("y\n")
	if got := w.run(t, "peek", "x"); got.code != 0 || !strings.HasSuffix(got.out, "1 B  a\n") || !strings.HasPrefix(got.err, "each look counts\n1 message in ") || !strings.Contains(got.err, "look at them anyway? [y/N]") {
		t.Errorf("%+v", got)
	}
	w.typing = strings.NewReader("y\n")
	if got := w.run(t, "dlq", "list", "x"); got.code != 0 || !strings.Contains(got.err, "look at them anyway? [y/N]") || !strings.Contains(got.err, "1 of 1 shown") {
		t.Errorf("%+v", got)
	}
	w.typing = strings.NewReader("\n")
	if got := w.run(t, "peek", "x"); got.code != 4 || got.out != "" || !strings.Contains(got.err, "answer y, or give --force") {
		t.Errorf("%+v", got)
	}
	w.typing = strings.NewReader("y\n") // a program that reads JSON is not asked
	if got := w.run(t, "peek", "x", "--json"); got.code != 1 || strings.Contains(got.err, "[y/N]") {
		t.Errorf("%+v", got)
	}
	w.typing = nil
	if got := w.run(t, "peek", "x", "--force"); got.code != 0 || !strings.HasSuffix(got.out, "1 B  a\n") {
		t.Errorf("%+v", got)
	}
}

func TestATargetThatCannotBeRead(t *testing.T) {
	w := world{source: func(string, urls.Options) (transport.Source, error) {
		return nil, &longshore.Error{Code: longshore.CodeBadAddress, Op: "TARGET", Err: errors.New("no scheme"), Hint: "write amqp://"}
	}}
	w.run(t, "peek", "orders").want(t, 2, "", "error[bad-address]: TARGET: no scheme\nhelp: write amqp://\n")
}
