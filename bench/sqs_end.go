package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
)

// sqsEnd is a server that is measured.
type sqsEnd struct {
	name, url string
	client    *awssqs.Client // fills queues
}

// sqsEnds starts sqstest and adds the server that is given.
func sqsEnds() (ends []*sqsEnd, stop func(), err error) {
	url, stop, err := startServer("sqstest")
	if err != nil {
		return nil, nil, err
	}
	ends = []*sqsEnd{newSQSEnd("sqstest", url)}
	if url := os.Getenv("SQS_ENDPOINT"); url != "" {
		ends = append(ends, newSQSEnd("ElasticMQ", url))
	} else {
		fmt.Println("\nsqs: on sqstest only, ElasticMQ needs SQS_ENDPOINT")
	}
	return ends, stop, nil
}

func newSQSEnd(name, url string) *sqsEnd {
	e := &sqsEnd{name: name, url: url}
	e.client, _ = e.newClient()
	return e
}

// credentials of nobody: the servers take all.
var sqsKeys = sqs.Keys("bench", transport.Static("bench"), transport.Secret{})

// newClient is a client of the SDK with a pool of its own.
func (e *sqsEnd) newClient() (*awssqs.Client, *tally) {
	t := &tally{next: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}}
	return awssqs.New(awssqs.Options{Region: "us-east-1", BaseEndpoint: &e.url, Credentials: sqsKeys, HTTPClient: t}), t
}

// tally counts requests.
type tally struct {
	next  awssqs.HTTPClient
	calls atomic.Int64
	polls chan struct{} // nil, or told of receives, if somebody listens
}

func (t *tally) Do(r *http.Request) (*http.Response, error) {
	t.calls.Add(1)
	if t.polls != nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ReceiveMessage") {
		select {
		case t.polls <- struct{}{}:
		default:
		}
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = onlyReader{r.Body} // or the SDK may cut the connection, and messages are lost until their timeout
	}
	return t.next.Do(r)
}

// close closes idle connections.
func (t *tally) close() {
	if c, ok := t.next.(*http.Client); ok {
		c.CloseIdleConnections()
	}
}

type onlyReader struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
}

func (b onlyReader) Read(p []byte) (int, error) { return b.body.Read(p) }
func (b onlyReader) Close() error               { return b.body.Close() }

// broker is Longshore's, with its calls counted.
func (e *sqsEnd) broker() (*sqs.Broker, *tally) {
	t := &tally{polls: make(chan struct{}, 1)}
	return sqs.New(sqs.Config{Region: "us-east-1", Endpoint: e.url, Credentials: sqsKeys, Options: []func(*awssqs.Options){
		func(o *awssqs.Options) { t.next, o.HTTPClient = o.HTTPClient, t },
	}}), t
}

var sqsNames atomic.Int64

// created makes a queue and returns its name and URL.
func (e *sqsEnd) created(ctx context.Context, fifo bool) (name, url string, err error) {
	name = "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36) + strconv.FormatInt(sqsNames.Add(1), 36)
	attrs := map[string]string{"VisibilityTimeout": "30"}
	if fifo {
		name += ".fifo"
		attrs["FifoQueue"] = "true"
	}
	out, err := e.client.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: &name, Attributes: attrs})
	if err != nil {
		return "", "", err
	}
	return name, *out.QueueUrl, nil
}

func (e *sqsEnd) remove(url string) error {
	_, err := e.client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: &url})
	return err
}

// fill sends n messages of 256 bytes. Groups of a FIFO queue take turns; a body
// begins with the group and the number in it.
func (e *sqsEnd) fill(ctx context.Context, url string, n, groups int) error {
	const senders = 8
	pad := strings.Repeat("x", 256)
	errs := make([]error, senders)
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			var batch []types.SendMessageBatchRequestEntry
			for i := range n {
				group := i
				if groups > 0 {
					group = i % groups
				}
				if group%senders != s { // of a group by one sender, so in order
					continue
				}
				m := types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(fmt.Sprintf("%d %d %s", group, i, pad)[:256])}
				if groups > 0 {
					m.MessageGroupId, m.MessageDeduplicationId = aws.String(strconv.Itoa(group)), aws.String(strconv.Itoa(i))
				}
				if batch = append(batch, m); len(batch) == 10 {
					errs[s] = errors.Join(errs[s], e.send(ctx, url, batch))
					batch = batch[:0]
				}
			}
			if len(batch) > 0 {
				errs[s] = errors.Join(errs[s], e.send(ctx, url, batch))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (e *sqsEnd) send(ctx context.Context, url string, batch []types.SendMessageBatchRequestEntry) error {
	out, err := e.client.SendMessageBatch(ctx, &awssqs.SendMessageBatchInput{QueueUrl: &url, Entries: batch})
	if err == nil && len(out.Failed) > 0 {
		err = fmt.Errorf("%d entries failed: %s", len(out.Failed), aws.ToString(out.Failed[0].Message))
	}
	return err
}
