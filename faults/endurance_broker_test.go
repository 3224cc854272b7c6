package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
)

// enduranceBroker is one broker beside the program, asked by clients of the test's own.
type enduranceBroker struct {
	kind, addr, name string
	source           transport.Source // its publisher
	backlog          int              // what may wait at the broker at once
	heap             int              // MB that may be live: MaxBytes of the container, what the client holds, and 32
	declared         func() bool      // the program's queue or topic is there
	left             func() int       // what is not settled and nobody has; -1 = not known now
	died             func() int       // how many are in the dead-letter destination
	dead             func(n int) (bodies []string)
	trim             func() // throws away what the broker keeps of what is settled
}

func enduranceOnRabbitMQ(t *testing.T) enduranceBroker {
	url := brokertest.AMQP(t)
	q := &rabbitQueue{t: t, url: url, name: "orders"}
	q.connect()
	t.Cleanup(func() { _ = q.conn.Close() })
	dlq := func() *rabbitQueue {
		return &rabbitQueue{t: t, url: url, name: "orders.dlq", conn: q.conn, ch: q.ch}
	}
	return enduranceBroker{
		kind: "amqp", addr: url, name: "orders", backlog: 20_000, heap: 64 + 32,
		source: amqp.New(url, amqp.Config{}).Queue("orders", amqp.QueueConfig{}),
		declared: func() bool {
			for _, name := range []string{"orders", "orders.dlq"} {
				if _, err := q.ch.QueueDeclarePassive(name, true, false, false, false, nil); err != nil {
					q.reconnect() // the answer "not found" costs the channel
					return false
				}
			}
			return true
		},
		left: func() int { ready, _ := q.depth(); return ready },
		died: func() int { ready, _ := dlq().depth(); return ready },
		dead: func(int) (bodies []string) {
			for _, d := range dlq().drainInto(oracle.New()) {
				bodies = append(bodies, string(d.Body))
			}
			return bodies
		},
		trim: func() {},
	}
}

func enduranceOnKafka(t *testing.T) enduranceBroker {
	addrs := brokertest.Kafka(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		t.Fatal(err)
	}
	k := &kafkaTopic{t: t, addrs: addrs, adm: kadm.NewClient(cl), name: brokertest.Name(t, "endurance")}
	dlq := k.name + ".dlq"
	t.Cleanup(func() {
		_, _ = k.adm.DeleteTopics(context.Background(), k.name, dlq) // the program may not have declared them
		_, _ = k.adm.DeleteGroups(context.Background(), k.name)
		cl.Close()
	})
	return enduranceBroker{
		kind: "kafka", addr: strings.Join(addrs, ","), name: k.name, backlog: 20_000, heap: 64 + 80 + 32,
		source: kafka.New(addrs, kafka.Config{}).Group(k.name, []string{k.name}, kafka.GroupConfig{}),
		declared: func() bool {
			known, err := k.adm.ListTopics(t.Context(), k.name, dlq)
			if err != nil || known[k.name].Err != nil || known[dlq].Err != nil || len(known[k.name].Partitions) == 0 {
				return false
			}
			// Small files, so that what is trimmed is a file soon.
			_, err = k.adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "segment.bytes", Value: kadm.StringPtr("16777216")}}, k.name)
			return err == nil
		},
		left: func() int {
			at, end, err := k.committed()
			if err != nil {
				return -1
			}
			return int(end - at)
		},
		died: func() int { return int(k.length(dlq)) },
		dead: func(n int) (bodies []string) {
			for _, r := range k.records(dlq, n) {
				bodies = append(bodies, string(r.Value))
			}
			return bodies
		},
		trim: func() {
			if at, err := k.adm.FetchOffsets(t.Context(), k.name); err == nil {
				_, _ = k.adm.DeleteRecords(t.Context(), at.Offsets()) // at another time then
			}
		},
	}
}

func enduranceOnSQS(t *testing.T) enduranceBroker {
	l := newSQSLab(t, nil, brokertest.SQS(t), 0)
	endpoint := *l.client.Options().BaseEndpoint
	name := brokertest.Name(t, "endurance")
	dlq := name + "-dlq"
	exists := func(name string) bool {
		_, err := l.client.GetQueueUrl(context.Background(), &awssqs.GetQueueUrlInput{QueueName: aws.String(name)})
		return err == nil
	}
	t.Cleanup(func() {
		for _, n := range []string{name, dlq} {
			if exists(n) {
				_, _ = l.client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: l.at(n)})
			}
		}
	})
	return enduranceBroker{
		kind: "sqs", addr: endpoint, name: name, backlog: 4_000, heap: 64 + 32, // ElasticMQ holds them in its own small heap
		source:   sqs.New(sqs.Config{Region: "us-east-1", Endpoint: endpoint, Credentials: sqsKeys()}).Queue(name, sqs.QueueConfig{}),
		declared: func() bool { return exists(name) && exists(dlq) },
		left:     func() int { visible, hidden := l.counts(name); return visible + hidden },
		died:     func() int { visible, _ := l.counts(dlq); return visible },
		dead: func(int) (bodies []string) {
			l.drain(dlq, func(m types.Message) { bodies = append(bodies, aws.ToString(m.Body)) })
			return bodies
		},
		trim: func() {},
	}
}
