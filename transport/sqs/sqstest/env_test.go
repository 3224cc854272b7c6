package sqstest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// env is a server with a client of it, and short forms of the calls.
type env struct {
	testing.TB
	s *sqstest.Server
	c *awssqs.Client
	// real time passes: then a machine that is busy makes everything late
	real bool
}

// A check is one thing that SQS does, by the name it has in the list of checks.
type check struct {
	name string
	run  func(e *env)
}

func allChecks() []check {
	return slices.Concat(queueChecks(), sendChecks(), batchChecks(), pollChecks(), visibilityChecks(), deleteChecks(), fifoChecks(), redriveChecks(), limitChecks())
}

func TestThereAreSeventyChecks(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range allChecks() {
		seen[c.name] = true
	}
	if len(seen) != 70 {
		t.Errorf("%d checks, want 70", len(seen))
	}
}

// Without a port, in a bubble: seconds pass at once.
func TestChecks(t *testing.T) {
	for _, c := range allChecks() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.run(newEnv(t, sqstest.Config{NoPort: true}))
			})
		})
	}
}

// Over TCP, in real time.
func TestChecksOverTCP(t *testing.T) {
	if testing.Short() {
		t.Skip("takes six seconds")
	}
	var wg sync.WaitGroup
	room := make(chan struct{}, 12) // all at once would be late by their own doing
	for _, c := range allChecks() {
		// Not t.Parallel, which runs as many at a time as there are cores: these wait.
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			t.Run(c.name, func(t *testing.T) { c.run(newEnv(t, sqstest.Config{})) })
		})
	}
	wg.Wait()
}

func newEnv(t testing.TB, cfg sqstest.Config) *env {
	t.Helper()
	s := sqstest.New(t, cfg)
	return &env{TB: t, s: s, c: clientOf(t, s, cfg.NoPort), real: !cfg.NoPort}
}

// clientOf is the SDK's client with no retries.
func clientOf(t testing.TB, s *sqstest.Server, noPort bool) *awssqs.Client {
	t.Helper()
	o := awssqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.URL), RetryMaxAttempts: 1,
		Credentials: s.Config().Credentials}
	if noPort {
		o.HTTPClient = s.HTTPClient()
	} else {
		tr := &http.Transport{}
		t.Cleanup(tr.CloseIdleConnections)
		o.HTTPClient = wholeBody{&http.Client{Transport: tr}}
	}
	return awssqs.New(o)
}

// wholeBody hides the request body's WriteTo, which the SDK closes under
// net/http's hands.
type wholeBody struct{ next *http.Client }

func (c wholeBody) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ readCloser }{r.Body}
	}
	return c.next.Do(r)
}

type readCloser interface {
	Read(p []byte) (int, error)
	Close() error
}

func (e *env) ctx() context.Context { return e.Context() }

func (e *env) wait(d time.Duration) { <-time.After(d) }

// ok fails the test on an error.
func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// code fails the test unless the error has the code.
func (e *env) code(err error, want string) {
	e.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != want {
		e.Errorf("error %v, want the code %s", err, want)
	}
}

// isA fails the test unless the error is of the Go type T.
func isA[T error](e *env, err error) {
	e.Helper()
	if target, ok := errors.AsType[T](err); !ok {
		e.Errorf("error %v, want a %T", err, target)
	}
}

func (e *env) queue(name string, attrs map[string]string) string {
	e.Helper()
	if strings.HasSuffix(name, ".fifo") {
		m := map[string]string{"FifoQueue": "true"}
		for k, v := range attrs {
			m[k] = v
		}
		attrs = m
	}
	out, err := e.c.CreateQueue(e.ctx(), &awssqs.CreateQueueInput{QueueName: &name, Attributes: attrs})
	e.ok(err)
	return *out.QueueUrl
}

func (e *env) send(q, body string, change ...func(*awssqs.SendMessageInput)) *awssqs.SendMessageOutput {
	e.Helper()
	out, err := e.trySend(q, body, change...)
	e.ok(err)
	return out
}

func (e *env) trySend(q, body string, change ...func(*awssqs.SendMessageInput)) (*awssqs.SendMessageOutput, error) {
	in := &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: &body}
	for _, f := range change {
		f(in)
	}
	return e.c.SendMessage(e.ctx(), in)
}

func delayed(seconds int32) func(*awssqs.SendMessageInput) {
	return func(in *awssqs.SendMessageInput) { in.DelaySeconds = seconds }
}

// inGroup sends to a FIFO queue; the deduplication id is optional.
func inGroup(group, dedup string) func(*awssqs.SendMessageInput) {
	return func(in *awssqs.SendMessageInput) {
		in.MessageGroupId = &group
		if dedup != "" {
			in.MessageDeduplicationId = &dedup
		}
	}
}

func with(attrs map[string]types.MessageAttributeValue) func(*awssqs.SendMessageInput) {
	return func(in *awssqs.SendMessageInput) { in.MessageAttributes = attrs }
}

func str(v string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &v}
}

// receive polls once; all names are asked for.
func (e *env) receive(q string, limit, wait int32, change ...func(*awssqs.ReceiveMessageInput)) []types.Message {
	e.Helper()
	in := &awssqs.ReceiveMessageInput{QueueUrl: &q, MaxNumberOfMessages: limit, WaitTimeSeconds: wait,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}}
	for _, f := range change {
		f(in)
	}
	out, err := e.c.ReceiveMessage(e.ctx(), in)
	e.ok(err)
	return out.Messages
}

func hiddenFor(seconds int32) func(*awssqs.ReceiveMessageInput) {
	return func(in *awssqs.ReceiveMessageInput) { in.VisibilityTimeout = seconds }
}

// one polls for exactly one message.
func (e *env) one(q string, wait int32, change ...func(*awssqs.ReceiveMessageInput)) types.Message {
	e.Helper()
	ms := e.receive(q, 1, wait, change...)
	if len(ms) != 1 {
		e.Fatalf("received %d messages, want 1", len(ms))
	}
	return ms[0]
}

// none polls and wants nothing.
func (e *env) none(q string) {
	e.Helper()
	if ms := e.receive(q, 10, 0); len(ms) != 0 {
		e.Errorf("received %v, want nothing", bodies(ms))
	}
}

func bodies(ms []types.Message) []string {
	out := make([]string, len(ms))
	for i := range ms {
		out[i] = *ms[i].Body
	}
	return out
}

// got wants these bodies in this order.
func (e *env) got(ms []types.Message, want ...string) {
	e.Helper()
	if got := bodies(ms); !slices.Equal(got, want) {
		e.Errorf("received %v, want %v", got, want)
	}
}

func (e *env) remove(q string, m types.Message) error {
	_, err := e.c.DeleteMessage(e.ctx(), &awssqs.DeleteMessageInput{QueueUrl: &q, ReceiptHandle: m.ReceiptHandle})
	return err
}

func (e *env) hide(q string, m types.Message, seconds int32) error {
	_, err := e.c.ChangeMessageVisibility(e.ctx(), &awssqs.ChangeMessageVisibilityInput{QueueUrl: &q, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
	return err
}

// attributes reads all attributes of a queue.
func (e *env) attributes(q string) map[string]string {
	e.Helper()
	out, err := e.c.GetQueueAttributes(e.ctx(), &awssqs.GetQueueAttributesInput{QueueUrl: &q, AttributeNames: []types.QueueAttributeName{"All"}})
	e.ok(err)
	return out.Attributes
}

// counts wants so many messages: visible, in flight, delayed.
func (e *env) counts(q string, want ...string) {
	e.Helper()
	a := e.attributes(q)
	got := []string{a["ApproximateNumberOfMessages"], a["ApproximateNumberOfMessagesNotVisible"], a["ApproximateNumberOfMessagesDelayed"]}
	if !slices.Equal(got, want) {
		e.Errorf("visible, in flight, delayed are %v, want %v", got, want)
	}
}

// later runs f after d and waits for its end when the check ends.
func (e *env) later(d time.Duration, f func()) (done func()) {
	end := make(chan struct{})
	go func() {
		defer close(end)
		<-time.After(d)
		f()
	}()
	return func() { <-end }
}

// took wants f to take between low and high; in real time low is all that is sure.
func (e *env) took(low, high time.Duration, f func()) {
	e.Helper()
	start := time.Now()
	f()
	if d := time.Since(start); d < low || d > high && !e.real {
		e.Errorf("took %s, want %s to %s", d, low, high)
	}
}
