package sqs_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// Handlers of 10 ms, 100 workers, ten polls: the container against a loop written
// by hand with as many polls, goroutines and batched deletes.
func BenchmarkContainer(b *testing.B) { onServers(b, throughContainer) }
func BenchmarkByHand(b *testing.B)    { onServers(b, byHand) }

const benchWork = 10 * time.Millisecond

func onServers(b *testing.B, run func(b *testing.B, endpoint, queue string)) {
	b.Run("sqstest", func(b *testing.B) {
		s := sqstest.New(b, sqstest.Config{CallLog: -1})
		s.CreateQueue(b, "bench", nil)
		run(b, s.URL, "bench")
	})
	b.Run("elasticmq", func(b *testing.B) {
		c := remoteClient(b)
		name := brokertest.Name(b, "bench")
		createRemote(b, c, name, nil)
		run(b, brokertest.SQS(b), name)
	})
}

func fill(b *testing.B, endpoint, queue string) *sqs.Broker {
	b.Helper()
	broker := sqs.New(remoteConfig(endpoint))
	p, err := broker.Publisher(sqs.PublisherConfig{})
	must(b, err)
	msgs := make([]*longshore.Message, b.N)
	for i := range msgs {
		msgs[i] = &longshore.Message{Body: make256()}
	}
	must(b, p.Publish(b.Context(), queue, msgs...))
	must(b, p.Close(b.Context()))
	return broker
}

func make256() []byte {
	body := make([]byte, 256)
	for i := range body {
		body[i] = 'x'
	}
	return body
}

func throughContainer(b *testing.B, endpoint, queue string) {
	broker := fill(b, endpoint, queue)
	var n atomic.Int64
	done := make(chan struct{})
	c, err := container.New(broker.Queue(queue, sqs.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		<-time.After(benchWork)
		if n.Add(1) == int64(b.N) {
			close(done)
		}
		return nil
	}), container.Config{Workers: container.Workers{Min: 100, Max: 100}, Logger: zap.NewNop()})
	must(b, err)
	b.ResetTimer()
	must(b, c.Start(b.Context()))
	<-done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	must(b, c.Stop(b.Context()))
}

func byHand(b *testing.B, endpoint, queue string) {
	fill(b, endpoint, queue)
	client := awssqs.New(awssqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(endpoint), Credentials: remoteConfig("").Credentials, HTTPClient: newTransport(b)})
	at, err := client.GetQueueUrl(b.Context(), &awssqs.GetQueueUrlInput{QueueName: &queue})
	must(b, err)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var n atomic.Int64
	work, dels := make(chan types.Message), make(chan string, 1000)
	var polls, deletes sync.WaitGroup
	b.ResetTimer()
	for range 10 {
		polls.Go(func() { pollByHand(ctx, client, at.QueueUrl, work) })
		deletes.Go(func() { deleteByHand(client, at.QueueUrl, dels) })
	}
	var workers sync.WaitGroup
	for range 100 {
		workers.Go(func() {
			for m := range work {
				<-time.After(benchWork)
				dels <- *m.ReceiptHandle
				if n.Add(1) == int64(b.N) {
					stop()
				}
			}
		})
	}
	<-ctx.Done()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	polls.Wait()
	close(work)
	workers.Wait()
	close(dels)
	deletes.Wait()
}

func pollByHand(ctx context.Context, c *awssqs.Client, url *string, work chan<- types.Message) {
	for ctx.Err() == nil {
		out, err := c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 5,
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
		if err != nil {
			return
		}
		for _, m := range out.Messages {
			select {
			case work <- m:
			case <-ctx.Done():
				return
			}
		}
	}
}

func deleteByHand(c *awssqs.Client, url *string, dels <-chan string) {
	for open := true; open; {
		var batch []types.DeleteMessageBatchRequestEntry
		for len(batch) < 10 && open {
			var receipt string
			if receipt, open = <-dels; open {
				batch = append(batch, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(len(batch))), ReceiptHandle: &receipt})
			}
		}
		if len(batch) > 0 {
			_, _ = c.DeleteMessageBatch(context.Background(), &awssqs.DeleteMessageBatchInput{QueueUrl: url, Entries: batch})
		}
	}
}
