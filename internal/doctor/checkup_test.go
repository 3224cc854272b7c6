package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.RabbitMQ, brokertest.KafkaNodes) }

// said is one line for each check that is not ok.
func said(checks []Check) string {
	var lines []string
	for _, c := range checks {
		if c.Level != OK {
			lines = append(lines, fmt.Sprintf("%s %s: %s", c.Level, c.Area, c.Text))
		}
	}
	return strings.Join(lines, "\n")
}

// expect wants each of the parts in the order of the lines, and as many lines.
func expect(t *testing.T, name string, checks []Check, parts ...string) {
	t.Helper()
	got := said(checks)
	lines := strings.Split(got, "\n")
	if got == "" {
		lines = nil
	}
	if len(lines) != len(parts) {
		t.Errorf("%s: %d lines, want %d:\n%s", name, len(lines), len(parts), got)
		return
	}
	for i, p := range parts {
		if !strings.Contains(lines[i], p) {
			t.Errorf("%s: %q, want %q", name, lines[i], p)
		}
	}
	for _, c := range checks {
		if (c.Level == OK) != (c.Hint == "") {
			t.Errorf("%s: %+v: what is not ok needs a hint", name, c)
		}
	}
}

// F-G01: a delivery limit without a dead-letter exchange is told.
func TestRabbitSettings(t *testing.T) {
	type m = map[string]any
	good := m{"x-dead-letter-exchange": "dlx", "x-delivery-limit": 5.0}
	for name, c := range map[string]struct {
		q       rabbitQueue
		handler time.Duration
		want    []string
	}{
		"all well":                    {rabbitQueue{Type: "quorum", Durable: true, Arguments: good, DLXBound: true}, time.Minute, nil},
		"limit without DLX":           {rabbitQueue{Type: "quorum", Durable: true, Arguments: m{"x-delivery-limit": 5.0}}, 0, []string{"bad limit: delivery limit 5 without"}},
		"the limit of 4.0":            {rabbitQueue{Version: "4.0.5", Type: "quorum", Durable: true}, 0, []string{"bad limit: delivery limit 20 without"}},
		"no limit before 4.0":         {rabbitQueue{Version: "3.10.8", Type: "quorum", Durable: true}, 0, []string{"warn limit: no dead-letter exchange"}},
		"moved by the container":      {rabbitQueue{Version: "3.10.8", Type: "quorum", Durable: true, Own: true}, 0, nil},
		"a limit and moved":           {rabbitQueue{Version: "4.0.5", Type: "quorum", Durable: true, Own: true}, 0, []string{"bad limit: delivery limit 20 without"}},
		"a limit of -1 is none":       {rabbitQueue{Version: "4.1.0", Type: "quorum", Durable: true, Arguments: m{"x-delivery-limit": -1.0}}, 0, []string{"warn limit: no dead-letter exchange"}},
		"a policy counts":             {rabbitQueue{Type: "quorum", Durable: true, DLXBound: true, Policy: m{"dead-letter-exchange": "dlx", "delivery-limit": 2.0}}, 0, []string{"warn limit: delivery limit 2"}},
		"DLX leads nowhere":           {rabbitQueue{Type: "classic", Durable: true, Arguments: good}, 0, []string{`bad limit: the dead-letter exchange "dlx" leads to no queue`}},
		"handler over the timeout":    {rabbitQueue{Type: "classic", Durable: true, Arguments: good, DLXBound: true}, 40 * time.Minute, []string{"bad lease: a handler may take 40m0s"}},
		"handler near the queue's":    {rabbitQueue{Type: "classic", Durable: true, Arguments: m{"x-dead-letter-exchange": "dlx", "x-consumer-timeout": 60000.0}, DLXBound: true}, 40 * time.Second, []string{"warn lease: a handler may take 40s, the consumer timeout is 1m0s (set for the queue)"}},
		"drops the oldest":            {rabbitQueue{Type: "classic", Durable: true, Arguments: m{"x-max-length": 10.0, "x-message-ttl": 1000.0}}, 0, []string{"warn limit: no dead-letter", "bad limit: more than 10", "warn retention: messages older than 1s"}},
		"no consumer, alarm, passing": {rabbitQueue{Type: "classic", Ready: 7, Alarm: "disk", Arguments: good, DLXBound: true}, 0, []string{"bad broker: RabbitMQ  has a disk alarm", "warn queue: classic, 7 ready and no consumer", "warn queue: the queue and its messages are gone"}},
	} {
		expect(t, name, judgeRabbit(&c.q, c.handler), c.want...)
	}
}

func TestKafkaSettings(t *testing.T) {
	good := map[string]string{"partitions": "6", "replicas": "3", "min.insync.replicas": "2", "cleanup.policy": "delete", "retention.ms": "604800000",
		"offsets.retention.minutes": "10080", "group.state": "Stable", "group.members": "2", "group.lag": "5"}
	for name, c := range map[string]struct {
		change  map[string]string
		handler time.Duration
		want    []string
	}{
		"all well":                  {nil, time.Second, nil},
		"one replica":               {map[string]string{"replicas": "1", "min.insync.replicas": "1"}, 0, []string{"warn broker: one replica"}},
		"min.insync 1 of 3":         {map[string]string{"min.insync.replicas": "1"}, 0, []string{"warn broker: min.insync.replicas 1"}},
		"min.insync 3 of 3":         {map[string]string{"min.insync.replicas": "3"}, 0, []string{"warn broker: min.insync.replicas 3 of 3"}},
		"nobody consumes":           {map[string]string{"group.members": "0", "group.state": "Empty"}, 0, []string{"warn queue: 5 records and no member"}},
		"handler over the drain":    {nil, time.Minute, []string{"warn lease: a handler may take 1m0s"}},
		"compacted":                 {map[string]string{"cleanup.policy": "compact"}, 0, []string{"warn limit: the topic is compacted", "warn retention: positions"}},
		"an hour":                   {map[string]string{"retention.ms": "3600000"}, 0, []string{"warn retention: records are deleted after 1h0m0s"}},
		"positions forgotten first": {map[string]string{"retention.ms": "-1"}, 0, []string{"warn retention: positions of a group"}},
		"settings may not be read":  {map[string]string{"retention.ms": "", "min.insync.replicas": "", "group.state": "", "cleanup.policy": ""}, 0, nil},
	} {
		m := map[string]string{}
		for _, from := range []map[string]string{good, c.change} {
			for k, v := range from {
				m[k] = v
			}
		}
		expect(t, name, checkKafka(m, c.handler), c.want...)
	}
}

func TestSQSSettings(t *testing.T) {
	redrive := `{"deadLetterTargetArn":"arn:aws:sqs:x:1:dead","maxReceiveCount":%s}`
	good := map[string]string{"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "RedrivePolicy": fmt.Sprintf(redrive, "5")}
	for name, c := range map[string]struct {
		change, dead map[string]string
		handler      time.Duration
		want         []string
	}{
		"all well":               {nil, map[string]string{"MessageRetentionPeriod": "1209600"}, time.Minute, nil},
		"no redrive":             {map[string]string{"RedrivePolicy": ""}, nil, 0, []string{"unknown limit: no redrive policy"}},
		"moved by the container": {map[string]string{"RedrivePolicy": ""}, map[string]string{"MessageRetentionPeriod": "1209600"}, 0, nil},
		"one receive, as text":   {map[string]string{"RedrivePolicy": fmt.Sprintf(redrive, `"1"`)}, nil, 0, []string{"warn limit: maxReceiveCount 1"}},
		"an hour hidden":         {map[string]string{"VisibilityTimeout": "3600"}, nil, 0, []string{"warn lease: visibility timeout 1h0m0s"}},
		"a second hidden":        {map[string]string{"VisibilityTimeout": "1"}, nil, 0, []string{"warn lease: visibility timeout 1s"}},
		"a day of handling":      {nil, nil, 24 * time.Hour, []string{"bad lease: a handler may take 24h0m0s"}},
		"retention not told":     {map[string]string{"MessageRetentionPeriod": ""}, nil, 0, []string{"unknown retention: the server does not report"}},
		"kept for an hour":       {map[string]string{"MessageRetentionPeriod": "3600"}, nil, 0, []string{"warn retention: messages are deleted after 1h0m0s"}},
		"dead letters go first": {nil, map[string]string{"MessageRetentionPeriod": "345600", "RedrivePolicy": "{}"}, 0,
			[]string{"warn retention: the dead-letter queue keeps messages for 4 days", "warn limit: the dead-letter queue has a redrive policy"}},
		"dead letters go round": {map[string]string{"QueueArn": "arn:aws:sqs:x:1:orders"}, map[string]string{"MessageRetentionPeriod": "1209600", "RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:x:1:orders","maxReceiveCount":5}`}, 0,
			[]string{"bad limit: the dead-letter queue has a redrive policy that leads back here"}},
		"empty and new": {map[string]string{"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0", "CreatedTimestamp": "1767225000"}, nil, 0,
			[]string{"warn queue: empty, and created 10m0s ago"}},
		"empty and old": {map[string]string{"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0", "CreatedTimestamp": "1700000000"}, nil, 0, nil},
	} {
		q := map[string]string{}
		for _, from := range []map[string]string{good, c.change} {
			for k, v := range from {
				q[k] = v
			}
		}
		expect(t, name, checkSQS(q, c.dead, c.dead != nil, c.handler, time.Unix(1767225600, 0)), c.want...)
	}
}

func TestCheckupOfASQSQueue(t *testing.T) {
	server := sqstest.New(t)
	server.CreateQueue(t, "dead", map[string]string{"MessageRetentionPeriod": "60"})
	server.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "2", "RedrivePolicy": `{"deadLetterTargetArn":"` + server.ARN("dead") + `","maxReceiveCount":5}`})
	b := sqs.New(server.Config())
	checks, err := Checkup(t.Context(), Patient{Source: b.Queue("orders", sqs.QueueConfig{}), Dead: b.Queue("dead", sqs.QueueConfig{})})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "sqs", checks, "empty, and created", "visibility timeout 2s", "the dead-letter queue keeps messages for 1m0s")
}

// A dead-letter queue that is gone, a queue that was just made and got nothing, and
// messages that some consumer holds are named.
func TestCheckupOfSQSIncidents(t *testing.T) {
	server := sqstest.New(t)
	server.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600"})
	b := sqs.New(server.Config())
	orders := b.Queue("orders", sqs.QueueConfig{})
	look := func() []Check {
		t.Helper()
		checks, err := Checkup(t.Context(), Patient{Source: orders, Dead: b.Queue("gone", sqs.QueueConfig{})})
		if err != nil {
			t.Fatal(err)
		}
		return checks
	}
	expect(t, "wrong queue", look(), "empty, and created", "the dead-letter queue does not exist")
	pub, err := b.Publisher(sqs.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close(t.Context())
	if err := pub.Publish(t.Context(), "orders", &longshore.Message{Body: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	other, err := orders.Open(t.Context(), transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	if _, err := other.Receive(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	named := false
	for _, c := range look() {
		named = named || strings.Contains(c.Text, "1 hidden") && strings.Contains(c.Text, "another program consumes this queue")
	}
	if !named {
		t.Error("a message that another consumer holds is not named")
	}
}

func TestCheckupOfAKafkaTopic(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	checkTopic(t, k.ListenAddrs(), "orders")
}

func TestCheckupOfARealKafkaTopic(t *testing.T) {
	addrs, topic := brokertest.Kafka(t), brokertest.Name(t, "doctor")
	(&kafkaIncident{t: t, addrs: addrs, topic: topic}).create(topic)
	checkTopic(t, addrs, topic)
}

func checkTopic(t *testing.T, addrs []string, topic string) {
	t.Helper()
	src := kafka.New(addrs, kafka.Config{}).Group("billing", []string{topic}, kafka.GroupConfig{})
	checks, err := Checkup(t.Context(), Patient{Source: src, Handler: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	text := said(checks)
	if !strings.Contains(text, "one replica") || !strings.Contains(text, "a handler may take 1m0s") || !strings.Contains(fmt.Sprint(checks), "2 partitions") {
		t.Errorf("%s\n%+v", text, checks)
	}
}

// The real broker: a quorum queue with a limit and no dead-letter exchange, and one
// whose exchange leads nowhere.
func TestCheckupOfARabbitQueue(t *testing.T) {
	addr := brokertest.AMQP(t)
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal("AMQP_URL is no URL")
	}
	p := Patient{Management: os.Getenv("AMQP_MANAGEMENT"), VHost: u.Path[1:]}
	if p.Management == "" {
		p.Management = "http://" + u.User.String() + "@" + u.Hostname() + ":15672"
	}
	b := amqp.New(addr, amqp.Config{})
	for name, args := range map[string]map[string]any{"limited": {"x-delivery-limit": int32(3)}, "nowhere": {"x-delivery-limit": int32(3), "x-dead-letter-exchange": "absent"}} {
		src := b.Queue(name, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum, Arguments: args}})
		c, err := src.Open(t.Context(), transport.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Source = src
		checks, err := Checkup(t.Context(), p)
		want := map[string]string{"limited": "delivery limit 3 without a dead-letter exchange", "nowhere": "leads to no queue"}[name]
		if err != nil || !strings.Contains(said(checks), want) {
			t.Errorf("%s: %v\n%s", name, err, said(checks))
		}
	}
	p.Source = b.Queue("missing", amqp.QueueConfig{})
	checks, err := Checkup(t.Context(), p)
	if err != nil || !strings.Contains(said(checks), `no queue "missing"`) {
		t.Errorf("%v\n%s", err, said(checks))
	}
}

// The real broker: policies that reach the queue, its dead letters and its retries.
//
// F-N16
func TestCheckupNamesPolicies(t *testing.T) {
	addr := brokertest.AMQP(t)
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal("AMQP_URL is no URL")
	}
	api := os.Getenv("AMQP_MANAGEMENT")
	if api == "" {
		api = "http://" + u.User.String() + "@" + u.Hostname() + ":15672"
	}
	b := amqp.New(addr, amqp.Config{})
	src := b.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum, Arguments: map[string]any{"x-delivery-limit": int32(5), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dlq"}}})
	c, err := src.Open(t.Context(), transport.OpenOptions{DeadLetter: "orders.dlq"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := Patient{Source: src, Dead: b.Queue("orders.dlq", amqp.QueueConfig{}), Management: api, VHost: u.Path[1:]}
	look := func() []Check {
		t.Helper()
		checks, err := Checkup(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return checks
	}
	const quiet = "RabbitMQ has counted no message in this queue"
	expect(t, "no policy", look(), quiet)
	brokertest.Policy(t, addr, "all", ".*", `{"expires":400000,"delivery-limit":2}`)
	expect(t, "a policy", look(), quiet, "warn limit: delivery limit 2", `bad policy: a policy on "orders": the queue is deleted`,
		`bad policy: a policy on "orders.dlq": the queue is deleted with its dead letters after 6m40s`, `bad policy: a policy on "longshore.delay.orders.1000": retries that wait there are deleted`)
}

// A management API that refuses: the error says what is needed, and never the password.
func TestRefusedManagementShowsNoPassword(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer s.Close()
	for _, api := range []string{strings.Replace(s.URL, "://", "://user:canary@", 1), "http://user:canary@host:bad/"} {
		_, err := Checkup(context.Background(), Patient{Source: amqp.New("amqp://127.0.0.1:1", amqp.Config{}).Queue("orders", amqp.QueueConfig{}), Management: api, From: Named, VHost: "/", Client: s.Client()})
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v", err)
		}
	}
}
