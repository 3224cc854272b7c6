package sqstest_test

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := sqstest.Start(sqstest.Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// eachServer measures this server over TCP and without a port and, with
// SQS_ENDPOINT, another one in the same run.
func eachServer(b *testing.B, f func(b *testing.B, c *awssqs.Client)) {
	b.Helper()
	tcp := &http.Transport{MaxIdleConnsPerHost: 16}
	defer tcp.CloseIdleConnections()
	over := wholeBody{&http.Client{Transport: tcp}}
	client := func(url string, via awssqs.HTTPClient) *awssqs.Client {
		creds := sqstest.New(b, sqstest.Config{NoPort: true}).Config().Credentials
		return awssqs.New(awssqs.Options{Region: "us-east-1", BaseEndpoint: &url, HTTPClient: via, Credentials: creds})
	}
	s, inside := sqstest.New(b, sqstest.Config{CallLog: -1}), sqstest.New(b, sqstest.Config{CallLog: -1, NoPort: true})
	b.Run("sqstest", func(b *testing.B) { f(b, client(s.URL, over)) })
	b.Run("sqstest-noport", func(b *testing.B) { f(b, client(inside.URL, inside.HTTPClient())) })
	if url := os.Getenv("SQS_ENDPOINT"); url != "" {
		b.Run("other", func(b *testing.B) { f(b, client(url, over)) })
	}
}

// benchQueue makes a queue that lives as long as b.
func benchQueue(b *testing.B, c *awssqs.Client, attrs map[string]string) string {
	b.Helper()
	name := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if attrs["FifoQueue"] == "true" {
		name += ".fifo"
	}
	out, err := c.CreateQueue(b.Context(), &awssqs.CreateQueueInput{QueueName: &name, Attributes: attrs})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if _, err := c.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: out.QueueUrl}); err != nil {
			b.Error(err)
		}
	})
	return *out.QueueUrl
}

// BenchmarkBatches is what a bridge does: ten messages of 256 bytes are sent,
// up to ten received, those deleted; by eight at a time.
func BenchmarkBatches(b *testing.B) {
	eachServer(b, func(b *testing.B, c *awssqs.Client) {
		roundTrips(b, c, benchQueue(b, c, nil), nil)
	})
}

// BenchmarkBatchesFIFO is the same with a hundred groups.
func BenchmarkBatchesFIFO(b *testing.B) {
	var n atomic.Int64
	eachServer(b, func(b *testing.B, c *awssqs.Client) {
		q := benchQueue(b, c, map[string]string{"FifoQueue": "true"})
		roundTrips(b, c, q, func(e *types.SendMessageBatchRequestEntry) {
			id := n.Add(1)
			e.MessageGroupId = aws.String(strconv.FormatInt(id%100, 10))
			e.MessageDeduplicationId = aws.String(strconv.FormatInt(id, 10))
		})
	})
}

func roundTrips(b *testing.B, c *awssqs.Client, q string, change func(*types.SendMessageBatchRequestEntry)) {
	var settled atomic.Int64
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n, err := roundTrip(b.Context(), c, q, change)
			if err != nil {
				b.Error(err)
				return
			}
			settled.Add(int64(n))
		}
	})
	b.ReportMetric(float64(settled.Load())/b.Elapsed().Seconds(), "messages/s")
}

func roundTrip(ctx context.Context, c *awssqs.Client, q string, change func(*types.SendMessageBatchRequestEntry)) (int, error) {
	body := strings.Repeat("x", 256)
	send := &awssqs.SendMessageBatchInput{QueueUrl: &q}
	for i := range 10 {
		e := entry(strconv.Itoa(i), body)
		if change != nil {
			change(&e)
		}
		send.Entries = append(send.Entries, e)
	}
	if _, err := c.SendMessageBatch(ctx, send); err != nil {
		return 0, err
	}
	got, err := c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: &q, MaxNumberOfMessages: 10})
	if err != nil || len(got.Messages) == 0 {
		return 0, err
	}
	settle := &awssqs.DeleteMessageBatchInput{QueueUrl: &q}
	for i, m := range got.Messages {
		settle.Entries = append(settle.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	if _, err := c.DeleteMessageBatch(ctx, settle); err != nil {
		return 0, err
	}
	return len(got.Messages), nil
}
