package sqs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// store is a claim check in memory.
type store struct {
	mu   sync.Mutex
	held map[string][]byte
}

func (s *store) Store(_ context.Context, body []byte) (sqs.Pointer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(len(s.held))
	s.held[key] = bytes.Clone(body)
	return sqs.Pointer{Bucket: "b", Key: key}, nil
}

func (s *store) Load(_ context.Context, at sqs.Pointer) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.held[at.Key]
	if !ok {
		return nil, errors.New("not there")
	}
	return b, nil
}

func TestLargeBodyIsClaimedOrRefused(t *testing.T) {
	large := bytes.Repeat([]byte{0, 'x'}, 600_000)
	s, b, p, c := setup(t, func(c *sqs.Config) { c.ClaimCheck = &store{held: map[string][]byte{}} }, sqs.QueueConfig{})
	m := &longshore.Message{Key: []byte("k"), Body: large, ContentType: "application/octet-stream"}
	for i := range 20 {
		m.Headers.Add(fmt.Sprintf("h%02d", i), "v")
	}
	d := trip(t, b, p, c, m)
	must(t, prepare(t, b, d))
	if !bytes.Equal(d.Body, large) || !reflect.DeepEqual(own(d.Headers), m.Headers) || string(d.Key) != "k" || d.ContentType != m.ContentType {
		t.Errorf("%d bytes, %d headers, key %q", len(d.Body), len(d.Headers), d.Key)
	}
	if n := len(s.Calls("SendMessageBatch")[0].Entries[0].Body); n > 200 {
		t.Errorf("%d bytes on the wire", n)
	}
	_, _, p, c = setup(t, nil, sqs.QueueConfig{})
	err := p.Publish(t.Context(), "orders", &longshore.Message{Body: large}, &longshore.Message{Body: []byte("small")})
	var partial *transport.PartialError
	if !errors.As(err, &partial) || len(partial.Failed) != 1 || !errors.Is(partial.Failed[0], longshore.CodeTooLarge) || !strings.Contains(err.Error(), "ClaimCheck") {
		t.Errorf("%v", err)
	}
	if d := take(t, c, 1)[0]; string(d.Body) != "small" {
		t.Errorf("%q", d.Body)
	}
}

// F-N19: a loaded body leaves no trace of its pointer in the headers, and other types stay.
func TestALoadedBodyLeavesNoHeaderBehind(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 1_200_000)
	types := longshore.Header{Name: "longshore-p-sqs-types", Value: `{"price":"Number.EUR"}`}
	for name, headers := range map[string]longshore.Headers{"none": nil, "one": {{Name: "a", Value: "b"}}, "a foreign type": {{Name: "price", Value: "1.50"}, types}} {
		_, b, p, c := setup(t, func(c *sqs.Config) { c.ClaimCheck = &store{held: map[string][]byte{}} }, sqs.QueueConfig{})
		d := trip(t, b, p, c, &longshore.Message{Body: large, Headers: headers.Clone()})
		must(t, prepare(t, b, d))
		for _, gone := range []string{"ExtendedPayloadSize", "SQSLargePayloadSize"} {
			if strings.Contains(fmt.Sprint(d.Headers), gone) {
				t.Errorf("%s: %v", name, d.Headers)
			}
		}
		if kinds, _ := d.Headers.Get(types.Name); name == "a foreign type" && kinds != types.Value || name != "a foreign type" && kinds != nil {
			t.Errorf("%s: the types are %v", name, kinds)
		}
	}
}

// F-N17: a message's limit is that of its queue, also when it is raised later.
func TestLimitIsTheQueues(t *testing.T) {
	s, _, p, c := setup(t, func(c *sqs.Config) { c.ClaimCheck = &store{held: map[string][]byte{}} }, sqs.QueueConfig{})
	s.CreateQueue(t, "narrow", map[string]string{"MaximumMessageSize": "262144"})
	body := bytes.Repeat([]byte("x"), 300<<10)
	must(t, p.Publish(t.Context(), "narrow", &longshore.Message{Body: body}))
	if n := len(s.Calls("SendMessageBatch")[0].Entries[0].Body); n > 200 {
		t.Errorf("%d bytes went to a queue that takes 262144", n)
	}
	must(t, p.Publish(t.Context(), "orders", &longshore.Message{Body: body}))
	if d := take(t, c, 1)[0]; !bytes.Equal(d.Body, body) {
		t.Errorf("%d bytes came from a queue that takes a MiB", len(d.Body))
	}
	_, _, p, _ = setup(t, nil, sqs.QueueConfig{})
	err := p.Publish(t.Context(), "orders", &longshore.Message{Body: bytes.Repeat([]byte("x"), 1<<20+1)})
	if !errors.Is(err, longshore.CodeTooLarge) || !strings.Contains(err.Error(), "the queue takes 1048576") {
		t.Errorf("published: %v", err)
	}
}

// The pointer of Amazon's extended client for Java, by its new and old name, alone
// and inside SNS, is followed to the body.
func TestJavaExtendedClientsPointerIsFollowed(t *testing.T) {
	kept := &store{held: map[string][]byte{"k": []byte("the large body")}}
	for _, class := range []string{"software.amazon.payloadoffloading.PayloadS3Pointer", "com.amazon.sqs.javamessaging.MessageS3Pointer"} {
		for _, attribute := range []string{"ExtendedPayloadSize", "SQSLargePayloadSize"} {
			for _, envelope := range []sqs.Envelope{sqs.None, sqs.SNS} {
				s, b, _, c := setup(t, func(c *sqs.Config) { c.ClaimCheck = kept }, sqs.QueueConfig{Envelope: envelope})
				in := &awssqs.SendMessageInput{QueueUrl: aws.String(s.URL + "/000000000000/orders")}
				pointer := fmt.Sprintf(`[%q,{"s3BucketName":"b","s3Key":"k"}]`, class)
				if envelope == sqs.SNS {
					in.MessageBody = aws.String(fmt.Sprintf(`{"Type":"Notification","MessageId":"m","TopicArn":"t","Message":%q,"MessageAttributes":{%q:{"Type":"Number","Value":"14"}}}`, pointer, attribute))
				} else {
					in.MessageBody = &pointer
					in.MessageAttributes = map[string]types.MessageAttributeValue{attribute: {DataType: aws.String("Number"), StringValue: aws.String("14")}}
				}
				_, err := rawClient(s).SendMessage(t.Context(), in)
				must(t, err)
				d := take(t, c, 1)[0]
				must(t, prepare(t, b, d))
				if string(d.Body) != "the large body" || d.Headers.Has(attribute) {
					t.Errorf("%s, %s, %q: body %s, headers %v", class, attribute, envelope, d.Body, d.Headers)
				}
				must(t, d.Ack(t.Context()))
			}
		}
	}
}

// prepare is what a container does before it calls a handler.
func prepare(t *testing.T, b *sqs.Broker, d *longshore.Delivery) error {
	t.Helper()
	return b.Queue("orders", sqs.QueueConfig{}).(transport.Preparer).Prepare(t.Context(), d) //nolint:errcheck // it is one
}

// F-N23: a body that is larger than MaxClaim is rejected: before it is loaded if its
// message says so, else where the store can stop, else when it is there.
func TestClaimedBodyIsBounded(t *testing.T) {
	held := map[string][]byte{"k": bytes.Repeat([]byte("x"), 2000)}
	for name, c := range map[string]struct {
		store sqs.ClaimCheck
		size  string
		loads int
	}{
		"stated":                {&counting{store: store{held: held}}, "2000", 0},
		"not stated":            {&counting{store: store{held: held}}, "14", 1},
		"a store that can stop": {&stopping{counting{store: store{held: held}}}, "14", 1},
	} {
		s, b, _, con := setup(t, func(cfg *sqs.Config) { cfg.ClaimCheck, cfg.MaxClaim = c.store, 1000 }, sqs.QueueConfig{})
		_, err := rawClient(s).SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: aws.String(s.URL + "/000000000000/orders"), MessageBody: aws.String(javaPointer),
			MessageAttributes: map[string]types.MessageAttributeValue{"ExtendedPayloadSize": {DataType: aws.String("Number"), StringValue: aws.String(c.size)}}})
		must(t, err)
		err = prepare(t, b, take(t, con, 1)[0])
		if !errors.Is(err, longshore.CodeTooLarge) || !strings.Contains(err.Error(), "more than 1000 bytes") {
			t.Errorf("%s: %v", name, err)
		}
		loads := 0
		switch s := c.store.(type) {
		case *counting:
			loads = s.loads
		case *stopping:
			loads = s.loads
		}
		if loads != c.loads {
			t.Errorf("%s: loaded %d times", name, loads)
		}
	}
}

// F-N23: claimed bodies count in the container's MaxBytes before they are loaded, one by one
// and in batches, and all are handled.
func TestClaimedBodiesCountInMaxBytes(t *testing.T) {
	for _, batch := range []int{0, 10} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "orders", nil)
			kept := &measuring{store: store{held: map[string][]byte{"k": make([]byte, 1<<20)}}}
			cfg := s.Config()
			cfg.ClaimCheck = kept
			b := sqs.New(cfg)
			const n = 20
			for range n {
				_, err := rawClient(s).SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: aws.String(s.URL + "/000000000000/orders"), MessageBody: aws.String(javaPointer),
					MessageAttributes: map[string]types.MessageAttributeValue{"ExtendedPayloadSize": {DataType: aws.String("Number"), StringValue: aws.String("1048576")}}})
				must(t, err)
			}
			var handled atomic.Int32
			handle := func(context.Context, *longshore.Delivery) error {
				wait(100 * time.Millisecond)
				kept.held.Add(-1)
				handled.Add(1)
				return nil
			}
			c := container.Config{Workers: container.Workers{Min: 8, Max: 8}, MaxBytes: 3 << 20}
			if batch > 0 {
				c.Batch = container.Batch{Size: batch, Linger: time.Second}
				runBatch(t, b.Queue("orders", sqs.QueueConfig{}), handle, c)
			} else {
				run(t, b.Queue("orders", sqs.QueueConfig{}), handle, c)
			}
			until(t, 5*time.Minute, "all are handled", func() bool { return handled.Load() == n })
			if most := kept.most.Load(); most > 3 {
				t.Errorf("batch %d: %d bodies of 1 MiB were held at once, MaxBytes allows 3", batch, most)
			}
		})
	}
}

// measuring counts the bodies that were loaded and not handled yet.
type measuring struct {
	store
	held, most atomic.Int32
}

func (m *measuring) Load(ctx context.Context, at sqs.Pointer) ([]byte, error) {
	n := m.held.Add(1)
	for was := m.most.Load(); n > was && !m.most.CompareAndSwap(was, n); was = m.most.Load() {
	}
	return m.store.Load(ctx, at)
}

// counting notes how often it is asked.
type counting struct {
	store
	loads int
}

func (c *counting) Load(ctx context.Context, at sqs.Pointer) ([]byte, error) {
	c.loads++
	return c.store.Load(ctx, at)
}

// stopping reads no more than it has to.
type stopping struct{ counting }

func (s *stopping) LoadUpTo(ctx context.Context, at sqs.Pointer, most int64) ([]byte, error) {
	b, err := s.counting.Load(ctx, at)
	return b[:min(int64(len(b)), most+1)], err
}

const javaPointer = `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]`

// sendPointer sends what the extended client sends, plain or by a topic, and returns
// the body on the wire.
func sendPointer(t *testing.T, s *sqstest.Server, envelope sqs.Envelope) string {
	t.Helper()
	in := &awssqs.SendMessageInput{QueueUrl: aws.String(s.URL + "/000000000000/orders"), MessageBody: aws.String(javaPointer),
		MessageAttributes: map[string]types.MessageAttributeValue{"ExtendedPayloadSize": {DataType: aws.String("Number"), StringValue: aws.String("14")}}}
	if envelope == sqs.SNS {
		in.MessageBody = aws.String(fmt.Sprintf(`{"Type":"Notification","MessageId":"m","TopicArn":"t","Message":%q,"MessageAttributes":{"ExtendedPayloadSize":{"Type":"Number","Value":"14"}}}`, javaPointer))
		in.MessageAttributes = nil
	}
	_, err := rawClient(s).SendMessage(t.Context(), in)
	must(t, err)
	return *in.MessageBody
}

// Without a claim check a pointer gets a verdict and no handler: it goes to the
// dead-letter destination as it is, and the reason says what to do.
func TestPointerWithoutAClaimCheckIsRejected(t *testing.T) {
	for _, envelope := range []sqs.Envelope{sqs.None, sqs.SNS} {
		for _, to := range []string{"dead", ""} { // the container's place, the queue's own
			for _, batch := range []int{0, 10} {
				t.Run(fmt.Sprintf("envelope %q, to %q, batch %d", envelope, to, batch), func(t *testing.T) {
					bubble(t, func(t *testing.T, s *sqstest.Server) {
						s.CreateQueue(t, "dead", nil)
						s.CreateQueue(t, "orders", map[string]string{"RedrivePolicy": redrive(s, "dead", 5)})
						b := sqs.New(s.Config())
						wire := sendPointer(t, s, envelope)
						publish(t, b, "orders", "", "good", `["an array",{}]`)
						var seen journal
						var reasons journal
						cfg := container.Config{DeadLetter: container.DeadLetter{To: to}, OnEvent: func(e container.Event) {
							if e.Err != nil {
								reasons.add(e.Err.Error())
							}
						}}
						handle := func(_ context.Context, d *longshore.Delivery) error {
							seen.add(string(d.Body))
							return nil
						}
						src := b.Queue("orders", sqs.QueueConfig{Envelope: envelope})
						if batch > 0 {
							cfg.Batch = container.Batch{Size: batch, Linger: time.Second}
							runBatch(t, src, handle, cfg)
						} else {
							run(t, src, handle, cfg)
						}
						until(t, time.Minute, "it is dead", func() bool { return state(t, s, "dead").Visible == 1 && state(t, s, "orders").Hidden == 0 })
						if seen.len() != 2 {
							t.Errorf("handlers saw %q", seen.all())
						}
						d := take(t, open(t, b.Queue("dead", sqs.QueueConfig{}), nil), 1)[0]
						switch {
						case to == "" && string(d.Body) != wire:
							t.Errorf("dead: %s", d.Body)
						case to != "" && (string(d.Body) != javaPointer || !d.Headers.Has("ExtendedPayloadSize") ||
							d.Headers.String(container.HeaderDeadReason) != "undecodable" || !strings.Contains(d.Headers.String(container.HeaderDeadError), "ClaimCheck")):
							t.Errorf("dead: %s, %v", d.Body, d.Headers)
						}
						if all := strings.Join(reasons.all(), "\n"); !strings.Contains(all, `"k" in "b"`) || !strings.Contains(all, "set sqs.Config.ClaimCheck") {
							t.Errorf("events: %s", all)
						}
					})
				})
			}
		}
	}
}

// runBatch is run for a handler of batches, called for each message.
func runBatch(t *testing.T, src transport.Source, h longshore.HandlerFunc, cfg container.Config) {
	t.Helper()
	c, err := container.NewBatch(src, func(ctx context.Context, ds []*longshore.Delivery) error {
		for _, d := range ds {
			if err := h(ctx, d); err != nil {
				return err
			}
		}
		return nil
	}, cfg)
	must(t, err)
	must(t, c.Start(t.Context()))
	t.Cleanup(func() { must(t, c.Stop(withoutEnd(t))) })
}

// A store that fails is a failure like the handler's: it is asked again at each
// attempt. Given up, the message is still the pointer, and can be put back.
func TestStoreThatFailsFollowsTheRedeliveryPolicy(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		s.CreateQueue(t, "dead", nil)
		kept := &flaky{store: store{held: map[string][]byte{"k": []byte("the large body")}}, failures: 3}
		cfg := s.Config()
		cfg.ClaimCheck = kept
		b := sqs.New(cfg)
		var seen journal
		run(t, b.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			seen.add(fmt.Sprintf("%s, attempt %d", d.Body, d.Attempt))
			return nil
		}, container.Config{Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: 100 * time.Millisecond, Max: 5 * time.Second}},
			DeadLetter: container.DeadLetter{To: "dead"}})
		sendPointer(t, s, sqs.None)
		until(t, time.Minute, "it is dead", func() bool { return state(t, s, "dead").Visible == 1 })
		c := open(t, b.Queue("dead", sqs.QueueConfig{}), nil)
		d := take(t, c, 1)[0]
		if string(d.Body) != javaPointer || d.Headers.String(container.HeaderDeadReason) != "unreachable" {
			t.Errorf("dead: %s, %v", d.Body, d.Headers)
		}
		kept.fail(2)
		p, err := b.Publisher(sqs.PublisherConfig{})
		must(t, err)
		must(t, p.Publish(t.Context(), "orders", &d.Message))
		must(t, p.Close(t.Context()))
		until(t, time.Minute, "it is handled", func() bool { return seen.len() > 0 })
		if got := seen.all(); len(got) != 1 || got[0] != "the large body, attempt 3" {
			t.Errorf("handlers saw %q", got)
		}
	})
}

// flaky is a store that fails for a while.
type flaky struct {
	store
	mu       sync.Mutex
	failures int
}

func (f *flaky) fail(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = n
}

func (f *flaky) Load(ctx context.Context, at sqs.Pointer) ([]byte, error) {
	f.mu.Lock()
	f.failures--
	bad := f.failures >= 0
	f.mu.Unlock()
	if bad {
		return nil, errors.New("slow down")
	}
	return f.store.Load(ctx, at)
}
