package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// sqsLab is an SQS-compatible server behind a proxy, with a client of its own beside
// the code under test. None of this has been run on AWS.
type sqsLab struct {
	t      *testing.T
	strict *sqstest.Server // nil on ElasticMQ
	proxy  *faultproxy.Proxy
	client *awssqs.Client
	url    string // through the proxy
	// lease is the visibility timeout of queues. ElasticMQ is at fault here: a poll
	// whose client went away still takes the next message, and hides it
	// (TestElasticMQGivesMessagesToPollsThatHaveEnded). A short lease bounds that; on
	// sqstest a long one shows that nobody waits for it.
	lease time.Duration
}

// onSQS runs a test on sqstest, and on ElasticMQ where SQS_ENDPOINT names it.
func onSQS(t *testing.T, f func(l *sqsLab)) {
	t.Parallel()
	t.Run("sqstest", func(t *testing.T) {
		t.Parallel()
		s := sqstest.New(t)
		f(newSQSLab(t, s, s.URL, time.Minute))
	})
	t.Run("elasticmq", func(t *testing.T) {
		t.Parallel()
		f(newSQSLab(t, nil, brokertest.SQS(t), 3*time.Second))
	})
}

func newSQSLab(t *testing.T, strict *sqstest.Server, endpoint string, lease time.Duration) *sqsLab {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := faultproxy.New(t, u.Host)
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	return &sqsLab{t: t, strict: strict, proxy: p, url: throughProxy(t, endpoint, p.Addr()), lease: lease,
		client: awssqs.New(awssqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(endpoint), Credentials: sqsKeys(), HTTPClient: &http.Client{Transport: pool}})}
}

func sqsKeys() aws.CredentialsProvider {
	return sqs.Keys("x", transport.Static("x"), transport.Secret{})
}

// config reaches the server through the proxy.
func (l *sqsLab) config() sqs.Config {
	return sqs.Config{Region: "us-east-1", Endpoint: l.url, Credentials: sqsKeys()}
}

func (l *sqsLab) broker() *sqs.Broker { return sqs.New(l.config()) }

// queue creates a queue that goes with the test; suffix may be ".fifo".
func (l *sqsLab) queue(suffix string, attrs map[string]string) string {
	l.t.Helper()
	name := brokertest.Name(l.t, "q")
	name = name[max(0, len(name)-60):] + suffix
	all := map[string]string{"VisibilityTimeout": strconv.Itoa(int(l.lease.Seconds()))}
	if suffix != "" {
		all["FifoQueue"] = "true"
	}
	for k, v := range attrs {
		all[k] = v
	}
	out, err := l.client.CreateQueue(l.t.Context(), &awssqs.CreateQueueInput{QueueName: &name, Attributes: all})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_, _ = l.client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: out.QueueUrl}) // it may be gone
	})
	return name
}

// redrive makes a queue whose messages go to dead after n receives.
func (l *sqsLab) redrive(n int) (name, dead string) {
	l.t.Helper()
	dead = l.queue("", nil)
	arn := l.attributes(dead)["QueueArn"]
	return l.queue("", map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, arn, n)}), dead
}

func (l *sqsLab) at(name string) *string {
	l.t.Helper()
	out, err := l.client.GetQueueUrl(context.WithoutCancel(l.t.Context()), &awssqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		l.t.Fatal(err)
	}
	return out.QueueUrl
}

func (l *sqsLab) attributes(name string) map[string]string {
	l.t.Helper()
	out, err := l.client.GetQueueAttributes(l.t.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: l.at(name), AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		l.t.Fatal(err)
	}
	return out.Attributes
}

func (l *sqsLab) counts(name string) (visible, hidden int) {
	l.t.Helper()
	a := l.attributes(name)
	visible, _ = strconv.Atoi(a["ApproximateNumberOfMessages"])
	hidden, _ = strconv.Atoi(a["ApproximateNumberOfMessagesNotVisible"])
	return visible, hidden
}

func (l *sqsLab) empty(name string) bool {
	visible, hidden := l.counts(name)
	return visible+hidden == 0
}

// idle waits until a queue is empty.
func (l *sqsLab) idle(name string) {
	l.t.Helper()
	eventually(l.t, time.Minute, "queue "+name+" is empty", func() bool { return l.empty(name) })
}

// publish sends n numbered messages from first on; with groups to a FIFO queue.
func (l *sqsLab) publish(led *oracle.Ledger, name string, first, n, groups int) {
	l.t.Helper()
	at := l.at(name)
	for from := first; from < first+n; from += 10 {
		in := &awssqs.SendMessageBatchInput{QueueUrl: at}
		for i := from; i < min(from+10, first+n); i++ {
			id, key := strconv.Itoa(i), ""
			e := types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i - from)), MessageBody: aws.String(id)}
			if groups > 0 {
				key = "g" + strconv.Itoa(i%groups)
				e.MessageGroupId, e.MessageDeduplicationId = aws.String(key), aws.String(id)
			}
			in.Entries = append(in.Entries, e)
			led.Published(id, key)
		}
		out, err := l.client.SendMessageBatch(l.t.Context(), in)
		if err != nil || len(out.Failed) > 0 {
			l.t.Fatalf("publish: %v %v", err, out)
		}
	}
}

// drain reads a queue empty.
func (l *sqsLab) drain(name string, f func(m types.Message)) {
	l.t.Helper()
	at := l.at(name)
	for {
		out, err := l.client.ReceiveMessage(l.t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: at, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
		if err != nil {
			l.t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return
		}
		for _, m := range out.Messages {
			f(m)
			if _, err := l.client.DeleteMessage(l.t.Context(), &awssqs.DeleteMessageInput{QueueUrl: at, ReceiptHandle: m.ReceiptHandle}); err != nil {
				l.t.Fatal(err)
			}
		}
	}
}
