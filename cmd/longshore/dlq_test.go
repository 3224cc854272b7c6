package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
	"github.com/longshore-go/longshore/transport/urls"
)

// dead is a world whose TARGET is a memory queue "orders.dlq" with three dead letters
// of "orders".
func dead(t *testing.T) (world, *memory.Broker) {
	t.Helper()
	b := memory.New(memory.Config{})
	b.Declare("orders")
	pub, err := b.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	letter := func(id, key, reason, text string, attempts int64, at time.Time) *longshore.Message {
		m := &longshore.Message{ID: id, Key: []byte(key), ContentType: "application/json", Body: []byte(`{"id":"` + id + `","card":"4711","items":[{"card":"4712"}]}`)}
		m.Headers = longshore.Headers{{Name: "tenant", Value: "t-1"}, {Name: longshore.HeaderID, Value: id}, {Name: "longshore-dead-reason", Value: reason}, {Name: "longshore-dead-error", Value: text},
			{Name: "longshore-dead-attempts", Value: attempts}, {Name: "longshore-dead-at", Value: at.Format(time.RFC3339Nano)},
			{Name: "longshore-dead-source", Value: "orders"}, {Name: "longshore-dead-by", Value: "orders@shop-2"}}
		return m
	}
	now := time.Now()
	if err := pub.Publish(t.Context(), "orders.dlq",
		letter("o-1", "c-91", "undecodable", "invalid character '<'", 1, now.Add(-72*time.Hour)),
		letter("o-2", "c-02", "panic", "index out of range\x1b[31m", 5, now.Add(-time.Hour)),
		letter("o-3", "c-02", "panic", "index out of range", 5, now.Add(-time.Minute))); err != nil {
		t.Fatal(err)
	}
	if err := pub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return world{source: func(string, urls.Options) (transport.Source, error) {
		return b.Queue("orders.dlq", memory.QueueConfig{}), nil
	}}, b
}

func TestDeadLettersAreListedWithTheirReasons(t *testing.T) {
	w, _ := dead(t)
	got := w.run(t, "dlq", "list", "x")
	clock := regexp.MustCompile(`\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d`)
	got.out = clock.ReplaceAllString(got.out, "TIME")
	lines := strings.Split(got.out, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	got.out = strings.Join(lines, "\n")
	got.want(t, 0, "id key reason attempts at error\no-1 c-91 undecodable 1 TIME invalid character '<'\n"+
		"o-2 c-02 panic 5 TIME index out of range\\x1b[31m\no-3 c-02 panic 5 TIME index out of range\n", "3 of 3 shown\n")
	got = w.run(t, "dlq", "list", "x", "--since", "24h", "-n", "1")
	if !strings.Contains(got.out, "o-2") || strings.Contains(got.out, "o-1") || got.err != "1 shown of the first 2; there may be more: raise -n\n" {
		t.Errorf("%+v", got)
	}
	got = w.run(t, "dlq", "list", "x", "--reason", "undecodable", "--json", "-q")
	var line struct {
		ID, Reason, From, To string
		Attempts             int
		Message              struct{ Body string }
	}
	if err := json.Unmarshal([]byte(got.out), &line); err != nil || line.ID != "o-1" || line.Reason != "undecodable" || line.To != "orders" || line.Attempts != 1 || !strings.Contains(line.Message.Body, "4711") {
		t.Errorf("%v %+v %q", err, line, got.out)
	}
}

func TestADeadLetterIsShown(t *testing.T) {
	w, _ := dead(t)
	got := w.run(t, "dlq", "show", "x", "o-2", "--mask", "card,tenant")
	for _, want := range []string{"reason       panic\n", "error        index out of range\\x1b[31m\n", "from         orders\n", "by           orders@shop-2\n", "  tenant                   ***\n",
		"body, 52 B application/json\n", `{"card":"***","id":"o-2","items":[{"card":"***"}]}`} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in\n%s", want, got.out)
		}
	}
	if got.code != 0 || strings.Contains(got.out, `"471`) {
		t.Errorf("%+v", got)
	}
	w.run(t, "dlq", "show", "x", "o-2", "--raw").want(t, 0, `{"id":"o-2","card":"4711","items":[{"card":"4712"}]}`, "")
	if got := w.run(t, "dlq", "show", "x", "o-2", "--json", "--mask", "card"); strings.Contains(got.out, `"471`) || !strings.Contains(got.out, `"reason": "panic"`) {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "dlq", "show", "x", "o-9"); got.code != 1 || !strings.HasPrefix(got.err, `error[not-found]: show dead letter "o-9"`) {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "dlq", "show", "x"); got.code != 2 || !strings.Contains(got.err, "ID is missing") {
		t.Errorf("%+v", got)
	}
}

// F-N22: ids and fields are taken as they are, whatever is in them.
func TestIdsAndFieldsAreTakenLiterally(t *testing.T) {
	for _, id := range []string{"1,2", `a"b`, `"1"`, "1,\"2\"", " x ", "a=b;c", "ü,*"} {
		b := memory.New(memory.Config{})
		pub, err := b.Publisher(memory.PublisherConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []string{"1", "2", id} {
			m := &longshore.Message{ID: one, ContentType: "application/json", Body: []byte(`{"a,b":"4711"}`)}
			m.Headers = longshore.Headers{{Name: longshore.HeaderID, Value: one}, {Name: "longshore-dead-reason", Value: "panic"}, {Name: "longshore-dead-source", Value: "orders"}}
			if err := pub.Publish(t.Context(), "orders.dlq", m); err != nil {
				t.Fatal(err)
			}
		}
		w := world{source: func(string, urls.Options) (transport.Source, error) {
			return b.Queue("orders.dlq", memory.QueueConfig{}), nil
		}}
		if got := w.run(t, "dlq", "show", "x", id, "--mask", "a,b"); got.code != 0 || strings.Contains(got.out, "4711") {
			t.Errorf("show %q: %+v", id, got)
		}
		if got := w.run(t, "dlq", "purge", "x", "--id", id, "--yes"); got.code != 0 || !strings.HasPrefix(got.out, "removed 1 message ") {
			t.Errorf("purge %q: %+v", id, got)
		}
		left, _, err := browse(context.Background(), b.Queue("orders.dlq", memory.QueueConfig{}), "", 9)
		if err != nil || len(left) != 2 || left[0].ID != "1" || left[1].ID != "2" {
			t.Errorf("after %q: %v, %v", id, left, err)
		}
		if err := pub.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestReplayIsAskedForAndSaysWhatItDid(t *testing.T) {
	w, b := dead(t)
	if got := w.run(t, "dlq", "replay", "x", "--reason", "panic"); got.code != 2 || !strings.Contains(got.err, "--yes does it") {
		t.Errorf("%+v", got)
	}
	w.run(t, "dlq", "replay", "x", "--reason", "panic", "--dry-run").want(t, 0,
		"would send 2 messages from memory queue \"orders.dlq\" at memory to orders, oldest first; none was replayed before; run again with --yes\n", "")
	if b.Inspect("orders").Ready != 0 {
		t.Error("a dry run sent something")
	}
	w.run(t, "dlq", "replay", "x", "--reason", "panic", "--rate", "500/s", "--yes").want(t, 0,
		"replayed 2, failed 0, left 1 that were not chosen; each was confirmed in the place it came from before it left memory queue \"orders.dlq\" at memory\n", "")
	ds, _, err := browse(context.Background(), b.Queue("orders", memory.QueueConfig{}), "", 9)
	if err != nil || len(ds) != 2 || longshore.Identity(ds[0]) != "o-2" || ds[0].ID != "o-2" || longshore.Identity(ds[1]) != "o-3" {
		t.Fatalf("%v %v", ds, err)
	}
	want := longshore.Headers{{Name: "tenant", Value: "t-1"}, {Name: longshore.HeaderID, Value: "o-2"},
		{Name: "longshore-dead-hops", Value: int64(1)}, {Name: "longshore-dead-replays", Value: int64(1)}}
	if h := ds[0].Headers; !slices.Equal(h, want) {
		t.Errorf("headers %v", h)
	}
	w.run(t, "dlq", "replay", "x", "--yes", "--json").want(t, 0,
		"{\n  \"target\": \"memory queue \\\"orders.dlq\\\" at memory\",\n  \"done\": 1,\n  \"failed\": 0,\n  \"kept\": 0,\n  \"unknown_destination\": 0,\n  \"unsettled\": 0,\n  \"not_reached\": 0\n}\n", "")
}

func TestPurgeIsAskedFor(t *testing.T) {
	w, b := dead(t)
	w.run(t, "dlq", "purge", "x", "--older", "48h", "--dry-run").want(t, 0, "would remove 1 message from memory queue \"orders.dlq\" at memory, left 2\n", "")
	if got := w.run(t, "dlq", "purge", "x"); got.code != 2 || b.Inspect("orders.dlq").Ready != 3 {
		t.Errorf("%+v", got)
	}
	w.run(t, "dlq", "purge", "x", "--older", "48h", "--yes").want(t, 0, "removed 1 message from memory queue \"orders.dlq\" at memory, left 2\n", "")
	if b.Inspect("orders.dlq").Ready != 2 {
		t.Errorf("%+v", b.Inspect("orders.dlq"))
	}
}

func TestChoosingWhereGivingBackHasACost(t *testing.T) {
	w, b := dead(t)
	w.source = func(_ string, o urls.Options) (transport.Source, error) {
		return costlyOutlet{costly{b.Queue("orders.dlq", memory.QueueConfig{}), o.BrowseCounts}}, nil
	}
	for _, args := range [][]string{{"list", "x"}, {"show", "x", "o-1"}, {"replay", "x", "--dry-run"}, {"replay", "x", "--reason", "panic", "--yes"}, {"purge", "x", "--reason", "panic", "--yes"}} {
		if got := w.run(t, append([]string{"dlq"}, args...)...); got.code != 1 || !strings.HasPrefix(got.err, "error[unsupported]: ") || !strings.Contains(got.err, "each look counts") || !strings.Contains(got.err, "--force") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	// All of them: nothing is given back.
	if got := w.run(t, "dlq", "replay", "x", "--yes"); got.code != 0 || b.Inspect("orders").Ready != 3 {
		t.Errorf("%+v", got)
	}
}

// costlyCounted is such a place whose broker tells how many messages it holds.
type costlyCounted struct {
	costlyOutlet
	n int
}

func (s costlyCounted) Depth(context.Context) (transport.Depth, error) {
	return transport.Depth{Ready: s.n}, nil
}

func TestPurgeOfAllIsCountedByTheBroker(t *testing.T) {
	w, b := dead(t)
	w.source = func(_ string, o urls.Options) (transport.Source, error) {
		return costlyCounted{costlyOutlet{costly{b.Queue("orders.dlq", memory.QueueConfig{}), o.BrowseCounts}}, b.Inspect("orders.dlq").Ready}, nil
	}
	if got := w.run(t, "dlq", "purge", "x", "--dry-run"); got.code != 0 || !strings.HasPrefix(got.out, "would remove 3 messages from ") {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "dlq", "purge", "x", "--dry-run", "--reason", "panic"); got.code != 1 || !strings.Contains(got.err, "--force") {
		t.Errorf("%+v", got)
	}
}

// The count comes from a queue that may be a quorum one, and nothing is taken from it;
// an absent one is not empty.
func TestAllOfRabbitMQAndSQSIsCountedWithoutALook(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	server := sqstest.New(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"QueueName":"orders-dlq"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "AmazonSQS.CreateQueue")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x/20260101/eu-west-1/sqs/aws4_request, SignedHeaders=host, Signature=x")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	_ = resp.Body.Close()
	sqs := "sqs://orders-dlq?region=eu-west-1&endpoint=" + url.QueryEscape(server.URL)
	rabbit := declared(t, "orders.dlq", amqp091.Table{"x-queue-type": "quorum"})
	for _, target := range []string{rabbit, sqs} {
		w := world{in: "a\nb\n"}
		if got := w.run(t, "publish", target, "-l"); got.code != 0 {
			t.Fatalf("%+v", got)
		}
		if got := w.run(t, "dlq", "purge", target, "--dry-run"); got.code != 0 || !strings.HasPrefix(got.out, "would remove 2 messages from ") {
			t.Errorf("%+v", got)
		}
		for _, verb := range []string{"replay", "purge"} {
			if got := w.run(t, "dlq", verb, target, "--reason", "panic"); got.code != 2 || !strings.Contains(got.err, "needs --force where that counts as a delivery") {
				t.Errorf("%s: %+v", verb, got)
			}
		}
	}
	if got := (world{}).run(t, "dlq", "purge", strings.Replace(rabbit, "orders.dlq", "absent", 1), "--dry-run"); got.code != 1 || !strings.HasPrefix(got.err, "error[not-found]") {
		t.Errorf("%+v", got)
	}
}

// Where a look is refused, as of a quorum queue, a dry run of all is counted; where each
// would go is not known then. What is offered where nobody can be asked works.
func TestReplayOfAllOfAQuorumQueueIsCounted(t *testing.T) {
	target := declared(t, "orders.dlq", amqp091.Table{"x-queue-type": "quorum"})
	w := world{in: "a\nb\n"}
	if got := w.run(t, "publish", target, "-l"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := w.run(t, "dlq", "replay", target); got.code != 2 || !strings.Contains(got.err, "--dry-run shows what it would do\n") {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "dlq", "replay", target, "--dry-run"); got.code != 0 || !strings.HasPrefix(got.out, "would send 2 messages from ") || !strings.HasSuffix(got.out, " to where each came from; run again with --yes\n") || !strings.Contains(got.err, "--force reads them") {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "dlq", "replay", target, "--dry-run", "--to", "orders", "-n", "1", "--json"); got.code != 0 || !strings.Contains(got.out, `"orders": 1`) {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "dlq", "replay", target, "--dry-run", "--reason", "panic"); got.code != 1 || !strings.Contains(got.err, "--force") {
		t.Errorf("%+v", got)
	}
}

func TestAURLIsNoDestination(t *testing.T) {
	w, b := dead(t)
	got := w.run(t, "dlq", "replay", "x", "--to", "amqp://u:secret@h", "--yes")
	if got.code != 2 || !strings.Contains(got.err, "exchange/key") || strings.Contains(got.err, "secret") || b.Inspect("orders.dlq").Ready != 3 {
		t.Errorf("%+v", got)
	}
}

func TestAVerbOfDeadLettersThatIsNone(t *testing.T) {
	for verb, hint := range map[string]string{"lst": "did you mean list?", "frobnicate": "the verbs are list, purge, replay, show"} {
		world{}.run(t, "dlq", verb).want(t, 2, "", "error[usage]: unknown command \""+verb+"\" for \"longshore dlq\"\nhelp: "+hint+"\n")
	}
}

func TestWhatIsLeftDoesNotCountWhatFailed(t *testing.T) {
	var out strings.Builder
	a := &dlqReplay{deadLetters: deadLetters{&app{print: cli.NewPrinter(cli.Streams{Out: &out, Err: &strings.Builder{}}, cli.Options{})}}}
	if err := a.show("q", dlq.Result{Failed: 1, Kept: 2}); err != nil || out.String() != "replayed 0, failed 1, left 2 that were not chosen; what failed stays too\n" {
		t.Errorf("%v %q", err, out.String())
	}
}

type costlyOutlet struct{ costly }

func (s costlyOutlet) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	return s.Source.(transport.Outlet).Publisher(ctx) //nolint:errcheck // the memory queue is one
}

func TestReplayOfWhatCameFromNowhere(t *testing.T) {
	w, b := filled(t, &longshore.Message{ID: "a", Body: []byte("a")})
	got := w.run(t, "dlq", "replay", "x", "--yes")
	if got.code != 1 || got.out != "replayed 0, failed 0\n" || !strings.Contains(got.err, "1 message left in memory queue \"orders\" at memory: no origin is recorded") {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "dlq", "replay", "x", "--yes", "--to", "billing"); got.code != 0 || b.Inspect("billing").Ready != 1 {
		t.Errorf("%+v", got)
	}
}

func TestMistakesInTheFlagsOfDeadLetters(t *testing.T) {
	w, _ := dead(t)
	for _, args := range []string{"list x -n 0", "list x --since -1h", "list x --look 0", "show x o-1 --raw --mask a", "replay x --rate fast", "replay x --rate 0/s", "replay x --rate 5/d", "replay x --batch 0", "list", "nothing x"} {
		if got := w.run(t, append([]string{"dlq"}, strings.Fields(args)...)...); got.code != 2 {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "50": 50, "50/s": 50, "120/m": 2, "3600/h": 1, "0.5/s": 0.5} {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
}

func TestProgressBar(t *testing.T) {
	var errs strings.Builder
	now := time.Unix(1000, 0)
	p := newProgress(cli.NewPrinter(cli.Streams{Err: &errs, ErrTerminal: true}, cli.Options{}))
	p.now, p.shown.said, p.samples = func() time.Time { return now }, now, []sample{{at: now}}
	p.ofJob(dlq.Result{Total: 100, Done: 0})
	now = now.Add(time.Second)
	p.ofJob(dlq.Result{Total: 100, Done: 50})
	now = now.Add(time.Second)
	p.ofJob(dlq.Result{Total: 100, Done: 99, Failed: 1})
	p.endJob(dlq.Result{Total: 100, Done: 99, Failed: 1})
	want := "\r\x1b[K▕        ▏ 0/100  0/s  ETA –\r\x1b[K▕████    ▏ 50/100  50/s  ETA 1s\r\x1b[K▕████████▏ 100/100  50/s  ETA 0s\r\x1b[K▕████████▏ 100/100  50/s  ETA 0s\n"
	if errs.String() != want {
		t.Errorf("%q\nwant %q", errs.String(), want)
	}
	errs.Reset()
	p = newProgress(cli.NewPrinter(cli.Streams{Err: &errs}, cli.Options{}))
	p.now, p.shown.said, p.samples = func() time.Time { return now }, now, []sample{{at: now}}
	for range 21 {
		now = now.Add(time.Second)
		p.ofJob(dlq.Result{Done: 7})
	}
	if got := strings.Count(errs.String(), "\n"); got != 2 {
		t.Errorf("%d lines in 21 s: %q", got, errs.String())
	}
}

func TestAnInterruptedReplayHasTheExitCodeOfTheSignal(t *testing.T) {
	if err := verdictOf(dlq.Result{Failed: 1}, context.Canceled); err != nil {
		t.Error(err)
	}
	if err := verdictOf(dlq.Result{Failed: 1, First: longshore.CodeUnroutable}, nil); cli.ExitCode(err) != 1 || !errors.Is(err, longshore.CodeUnroutable) {
		t.Error(err)
	}
}

// cutOff is a queue whose publisher loses its connection with the second batch.
type cutOff struct{ transport.Source }

func (s cutOff) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	p, self, err := s.Source.(transport.Outlet).Publisher(ctx) //nolint:errcheck // the memory queue is one
	return &cutPublisher{Publisher: p}, self, err
}

type cutPublisher struct {
	transport.Publisher

	batches int
}

func (p *cutPublisher) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	if p.batches++; p.batches == 1 {
		return p.Publisher.Publish(ctx, dest, msgs...)
	}
	return &longshore.Error{Code: longshore.CodeConnLost, Op: "publish", Err: errors.New("EOF"), Hint: "try again"}
}

// What was sent perhaps is not called failed, and there is one error with what to do.
func TestReplayWhoseLinkBreaksTellsTheTruth(t *testing.T) {
	w, b := dead(t)
	inner, left := w.source, b.Inspect("orders.dlq").Ready
	w.source = func(target string, o urls.Options) (transport.Source, error) {
		src, err := inner(target, o)
		return cutOff{src}, err
	}
	got := w.run(t, "dlq", "replay", "x", "--yes", "--batch", "1")
	if got.code != 6 || !strings.HasPrefix(got.out, "replayed 1, failed 0; each was confirmed") || strings.Count(got.err, "error[") != 1 ||
		!strings.Contains(got.err, "error[conn-lost]: publish: EOF\nhelp: try again\n") || !strings.Contains(got.err, "1 message may have been sent without being removed") ||
		!strings.Contains(got.err, "run the same command again to continue\n") {
		t.Errorf("%+v", got)
	}
	if now := b.Inspect("orders.dlq").Ready; now != left-1 {
		t.Errorf("%d are left of %d", now, left)
	}
}

// A prompt says how many messages it is about.
func TestPromptsStateTheCount(t *testing.T) {
	w, b := dead(t)
	w.source = func(_ string, o urls.Options) (transport.Source, error) {
		return costlyCounted{costlyOutlet{costly{b.Queue("orders.dlq", memory.QueueConfig{}), o.BrowseCounts}}, 3}, nil
	}
	for want, args := range map[string][]string{
		"permanently remove 3 messages from":                       {"purge", "x"},
		"permanently remove 2 of 3 messages from":                  {"purge", "x", "-n", "2"},
		"replay 3 messages from":                                   {"replay", "x"},
		"replay at most 2 of the matching ones of 3 messages from": {"replay", "x", "--reason", "panic", "-n", "2"},
		"to orders/again? [y/N] ":                                  {"replay", "x", "--to", "orders/again"},
	} {
		w.typing = strings.NewReader("n\n")
		if got := w.run(t, append([]string{"dlq"}, args...)...); got.code != 4 || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if b.Inspect("orders.dlq").Ready != 3 {
		t.Error("something was done")
	}
}
