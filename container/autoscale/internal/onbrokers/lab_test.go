package onbrokers

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
)

func TestMain(m *testing.M) {
	// The tests wait nearly all the time: many at once take as long as the longest.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	brokertest.Main(m, brokertest.RabbitMQ, brokertest.KafkaNodes, brokertest.SQSServer)
}

// lab is a fresh queue on a broker. check looks at what the broker sees of its
// consumers, by a client of its own.
type lab struct {
	source transport.Source
	check  func(t *testing.T)
}

func labs() map[string]func(*testing.T) lab {
	return map[string]func(*testing.T) lab{"rabbitmq": rabbit, "kafka": kafkaLab, "sqs": sqsLab}
}

func rabbit(t *testing.T) lab {
	url := brokertest.AMQP(t)
	conn, err := amqp091.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return lab{amqp.New(url, amqp.Config{}).Queue("burst", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}), func(t *testing.T) {
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ch.Close() }()
		q, err := ch.QueueDeclarePassive("burst", true, false, false, false, amqp091.Table{"x-queue-type": "quorum"})
		if err != nil || q.Consumers < 1 || q.Consumers > 6 {
			t.Errorf("the broker sees %d consumers (%v), want 1 to 6 for any number of workers", q.Consumers, err)
		}
	}}
}

func kafkaLab(t *testing.T) lab {
	addrs, name := brokertest.Kafka(t), brokertest.Name(t, "burst")
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(cl)
	t.Cleanup(func() {
		_, _ = admin.DeleteGroups(context.Background(), name)
		_, _ = admin.DeleteTopics(context.Background(), name)
		cl.Close()
	})
	member := ""
	src := kafka.New(addrs, kafka.Config{}).Group(name, []string{name}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 4}})
	return lab{src, func(t *testing.T) {
		groups, err := admin.DescribeGroups(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		g := groups[name]
		if len(g.Members) != 1 || len(g.AssignedPartitions()[name]) != 4 || member != "" && g.Members[0].MemberID != member {
			t.Errorf("the group has %d members, %v assigned: scaling must not touch the assignment", len(g.Members), g.AssignedPartitions())
			return
		}
		member = g.Members[0].MemberID
	}}
}

func sqsLab(t *testing.T) lab { return sqsQueue(t, map[string]string{}) }

// sqsQueue is a lab with a queue of these attributes.
func sqsQueue(t *testing.T, attributes map[string]string) lab {
	endpoint, name := brokertest.SQS(t), strings.ReplaceAll(brokertest.Name(t, "burst"), ".", "-")
	pool := &http.Transport{}
	cfg := sqs.Config{Region: "us-east-1", Endpoint: endpoint, Credentials: sqs.Keys("x", transport.Static("x"), transport.Secret{}), HTTPClient: &http.Client{Transport: pool}}
	client := awssqs.New(awssqs.Options{Region: cfg.Region, BaseEndpoint: aws.String(endpoint), Credentials: cfg.Credentials, HTTPClient: cfg.HTTPClient})
	t.Cleanup(func() {
		if found, err := client.GetQueueUrl(context.Background(), &awssqs.GetQueueUrlInput{QueueName: aws.String(name)}); err == nil {
			_, _ = client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: found.QueueUrl})
		}
		pool.CloseIdleConnections()
	})
	src := sqs.New(cfg).Queue(name, sqs.QueueConfig{Declare: sqs.Declare{Attributes: attributes}})
	return lab{src, func(*testing.T) {}}
}

func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return list
}
