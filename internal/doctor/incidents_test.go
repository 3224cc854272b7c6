package doctor

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// F-N34: doctor on the staged incidents.
func TestDoctorOnTheIncidents(t *testing.T) {
	consumer := func(tag, program, name string) rabbitConsumer {
		c := rabbitConsumer{Tag: tag, Program: program, Name: name}
		c.Channel.Host = "10.0.0.7"
		return c
	}
	queue := func(stats *rabbitStats, all ...rabbitConsumer) *rabbitQueue {
		return &rabbitQueue{Type: "quorum", Durable: true, Own: true, Version: "3.10.8", Counted: true, Stats: stats, Details: all, Consumers: len(all)}
	}
	some := &rabbitStats{Publish: 9}
	for name, c := range map[string]struct {
		q    *rabbitQueue
		want []string
	}{
		"one service":          {queue(some, consumer("longshore-A-1", "shop v2", ""), consumer("longshore-B-1", "shop v2", "")), nil},
		"an older version":     {queue(some, consumer("longshore-A-1", "shop v2", ""), consumer("longshore-B-1", "shop v1", "")), []string{"warn queue: different programs share its messages: 1 of shop v1 from 10.0.0.7; 1 of shop v2 from 10.0.0.7"}},
		"one from before that": {queue(some, consumer("longshore-A-1", "shop v2", ""), consumer("longshore-B-1", "", "")), []string{"older one"}},
		"a stranger":           {queue(some, consumer("longshore-A-1", "shop v2", ""), consumer("ctag1.x", "", "pika")), []string{"pika (not Longshore)"}},
		"never anything":       {queue(nil, consumer("longshore-A-1", "shop v2", "")), []string{"warn queue: RabbitMQ has counted no message"}},
	} {
		expect(t, name, judgeRabbit(c.q, 0), c.want...)
	}
	remade := queue(some)
	remade.Arguments, remade.Wanted = map[string]any{"x-max-length": 10.0, "x-message-ttl": 1e6, "x-delivery-limit": 5.0, "x-queue-type": "quorum"}, map[string]any{"x-max-length": int32(20), "x-message-ttl": int32(1000000), "x-queue-type": "quorum"}
	expect(t, "remade", judgeRabbit(remade, 0), "x-delivery-limit is 5 (declared: not set), x-max-length is 10 (declared: 20)", "delivery limit 5 without", "more than 10 messages", "are dropped")
	expect(t, "it moves", stands("0:5,1:7", "0:6"))
	expect(t, "one stands", stands("0:5,1:7", "0:5,1:9"), "warn queue: records wait and the group's position does not move: partition 0 at 5")
	group := map[string]string{"partitions": "6", "replicas": "3", "min.insync.replicas": "2", "group.state": "Stable", "group.lag": "0", "records": "5"}
	with := func(k, v string) map[string]string {
		m := map[string]string{}
		for a, b := range group {
			m[a] = b
		}
		m[k] = v
		return m
	}
	expect(t, "members elsewhere", checkKafka(with("group.elsewhere", "2"), 0), "no member of the group reads this topic, 2 read others")
	waiting := with("group.elsewhere", "1")
	waiting["group.lag"] = "4"
	expect(t, "members elsewhere, and records", checkKafka(waiting, 0), "no member of the group reads this topic, 1 reads others, and 4 records wait")
	expect(t, "nothing written", checkKafka(func() map[string]string { m := with("group.members", "1"); m["records"] = "0"; return m }(), 0), "no record was ever written")
}

// F-N16: without the management API doctor says what policies could do and that it has not
// looked at them.
func TestDoctorSaysThatPoliciesWereNotRead(t *testing.T) {
	for _, c := range bare(map[string]string{"version": "4.0.5", "messages": "0", "consumers": "1"}, "no API", "name it") {
		if c.Area == "policy" && c.Level == Unknown && c.Hint == "name it" && strings.Contains(c.Text, "deletes retries") {
			return
		}
	}
	t.Error("policies are not mentioned")
}

// F-N34: the real broker names the program that takes messages from the queue.
func TestDoctorNamesAStranger(t *testing.T) {
	addr := brokertest.AMQP(t)
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal("AMQP_URL is no URL")
	}
	api := os.Getenv("AMQP_MANAGEMENT")
	if api == "" {
		api = "http://" + u.User.String() + "@" + u.Hostname() + ":15672"
	}
	src := amqp.New(addr, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}})
	c, err := src.Open(t.Context(), transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	conn, err := amqp091.Dial(addr)
	if err != nil {
		t.Fatal("the stranger cannot connect")
	}
	defer func() { _ = conn.Close() }() // the test is over
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Consume("orders", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	p := Patient{Source: src, Own: true, Management: api, VHost: u.Path[1:]}
	for end := time.Now().Add(30 * time.Second); ; { // the API counts every 5 s
		checks, err := Checkup(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if s := said(checks); strings.Contains(s, "different programs share its messages") && strings.Contains(s, "(not Longshore)") && strings.Contains(s, "doctor.test") {
			return
		} else if time.Now().After(end) {
			t.Fatal(s)
		}
	}
}

// The tag, prefetch, acknowledgements, activity and capacity that the broker has of a
// container's consumer stand in doctor's report, under the name that Stats has.
func TestDoctorShowsTheBrokersViewOfAConsumer(t *testing.T) {
	t.Parallel()
	addr := brokertest.AMQP(t)
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal("AMQP_URL is no URL")
	}
	src := amqp.New(addr, amqp.Config{}).Queue("orders", amqp.QueueConfig{Prefetch: 23, Declare: amqp.Declare{Type: amqp.Quorum}})
	c, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), container.Config{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	tag := c.Stats().ConsumerTag
	if !strings.HasPrefix(tag, "longshore-") {
		t.Fatalf("consumer tag %q", tag)
	}
	p := Patient{Source: src, Own: true, Management: strings.Replace(brokertest.Management(t, addr), "://", "://"+u.User.String()+"@", 1), VHost: u.Path[1:]}
	wants := []string{"RabbitMQ's view of " + tag + " from", "prefetch 23, acknowledgements required, active", "RabbitMQ's consumer capacity 1.00"}
	for end := time.Now().Add(30 * time.Second); ; <-time.After(200 * time.Millisecond) { // the API counts every 5 s
		checks, err := Checkup(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if s := fmt.Sprint(checks); !slices.ContainsFunc(wants, func(w string) bool { return !strings.Contains(s, w) }) {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%q is not all in\n%s", wants, s)
		}
	}
}

// Many consumers are named up to a bound; how many more there are and the capacity stay.
func TestTheBrokersViewOfManyConsumersIsBounded(t *testing.T) {
	yes, capacity := true, 0.5
	q := &rabbitQueue{Type: "quorum", Durable: true, Own: true, Consumers: 8, Capacity: &capacity}
	for range 8 {
		q.Details = append(q.Details, rabbitConsumer{Tag: "longshore-x", Active: &yes, Prefetch: 7, Acks: true})
	}
	var f findings
	rabbitView(&f, q)
	if s := fmt.Sprint(f); strings.Count(s, "prefetch 7, acknowledgements required, active") != mostShown || !strings.Contains(s, "and 3 consumers more") || !strings.Contains(s, "consumer capacity 0.50") {
		t.Error(s)
	}
}
