package interop_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

const region = "eu-west-1"

// stand is one queue of a server.
type stand struct {
	endpoint, queue, url string
	client               *awssqs.Client
}

func newStand(t *testing.T, endpoint string) stand {
	t.Helper()
	s := stand{endpoint: endpoint, queue: brokertest.Name(t, "spring")}
	web := &http.Client{Transport: &http.Transport{}}
	s.client = awssqs.New(awssqs.Options{Region: region, BaseEndpoint: &s.endpoint, HTTPClient: web, Credentials: sqs.Keys("x", transport.Static("x"), transport.Secret{})})
	out, err := s.client.CreateQueue(bounded(t), &awssqs.CreateQueueInput{QueueName: &s.queue})
	if err != nil {
		t.Fatal(err)
	}
	s.url = *out.QueueUrl
	t.Cleanup(func() {
		_, _ = s.client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: &s.url})
		web.CloseIdleConnections()
	})
	return s
}

func (s stand) broker() *sqs.Broker {
	return sqs.New(sqs.Config{Region: region, Endpoint: s.endpoint, Credentials: sqs.Keys("x", transport.Static("x"), transport.Secret{})})
}

func (s stand) source() transport.Source { return s.broker().Queue(s.queue, sqs.QueueConfig{}) }

func onSQS(t *testing.T, mode string, want int, write func(t *testing.T, s stand), check func(t *testing.T, s stand)) {
	t.Helper()
	t.Run("kept", func(t *testing.T) {
		s := newStand(t, sqstest.New(t).URL)
		s.write(t, golden(t, mode))
		check(t, s)
	})
	t.Run("spring", func(t *testing.T) {
		needJava(t)
		s := newStand(t, brokertest.SQS(t))
		keep(t, mode, func() []raw { write(t, s); return s.take(t, want) })
		write(t, s)
		check(t, s)
	})
}

func (s stand) write(t *testing.T, all []raw) {
	t.Helper()
	for _, r := range all {
		in := &awssqs.SendMessageInput{QueueUrl: &s.url, MessageBody: aws.String(string(*r.Body)), MessageAttributes: map[string]types.MessageAttributeValue{}}
		for _, h := range r.Headers {
			text, _ := h.Value.(string)
			a := types.MessageAttributeValue{DataType: aws.String(h.Kind), StringValue: aws.String(text)}
			if h.Kind == "Binary" {
				b, err := bytesOf(text)
				if err != nil {
					t.Fatal(err)
				}
				a.BinaryValue, a.StringValue = b, nil
			}
			in.MessageAttributes[h.Name] = a
		}
		if _, err := s.client.SendMessage(bounded(t), in); err != nil {
			t.Fatal(err)
		}
	}
}

func (s stand) take(t *testing.T, want int) (all []raw) {
	t.Helper()
	for range 20 {
		out, err := s.client.ReceiveMessage(bounded(t), &awssqs.ReceiveMessageInput{QueueUrl: &s.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			r := raw{In: "orders", Body: blobOf([]byte(*m.Body))}
			for _, name := range slices.Sorted(maps.Keys(m.MessageAttributes)) {
				a := m.MessageAttributes[name]
				f := field{Name: name, Kind: *a.DataType, Value: aws.ToString(a.StringValue)}
				if a.BinaryValue != nil {
					f.Value = textOf(a.BinaryValue)
				}
				r.Headers = append(r.Headers, f)
			}
			all = append(all, r)
			if _, err := s.client.DeleteMessage(bounded(t), &awssqs.DeleteMessageInput{QueueUrl: &s.url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
		if len(all) >= want {
			return all
		}
	}
	t.Fatalf("%d of %d messages", len(all), want)
	return nil
}

func TestReadsWhatSpringCloudAWSWrites(t *testing.T) {
	onSQS(t, "sqs-write", 4,
		func(t *testing.T, s stand) { java(t, "sqs-write", "address", s.endpoint, "queue", s.queue) },
		func(t *testing.T, s stand) {
			l := consumed(t, s.source(), 4, nil, discard)
			for name, want := range map[string]string{
				"class":   "paid {o-1 1250}",
				"headers": "paid {o-2 1}",
				"more":    "paid {o-3 2}",
				"text":    "other java.lang.String  grüße",
			} {
				if have := shown(l.of(name)); have != want {
					t.Errorf("%s: %q, want %q", name, have, want)
				}
			}
			if h := l.of("headers"); len(h) == 1 {
				checkHeaders(t, h[0].m.Headers, map[string]any{"string": "grüße", "boolean": "true", "int": int32(-70_000), "long": int64(9_007_199_254_740_993), "double": 0.1, "JavaType": "com.acme.OrderPaid"})
			}
			if h := l.of("more"); len(h) == 1 {
				checkHeaders(t, h[0].m.Headers, map[string]any{"bytes": []byte{0, 0xff}, "decimal": longshore.Decimal{Scale: 2, Value: 1250}, "list": "[a, 1]", "uuid": "00000000-0000-0000-0000-0000000000ff"})
			}
		})
}
