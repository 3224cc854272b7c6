package amqp_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// The management API names who consumes; it is asked once in five seconds, and once about
// each connection.
func TestConsumersByTheManagementAPI(t *testing.T) {
	var queues, connections atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.EscapedPath(), "/api/queues/%2F/orders") {
			queues.Add(1)
			_, _ = fmt.Fprint(w, `{"message_stats":{"deliver_get":1200},"consumer_details":[
				{"consumer_tag":"ours","channel_details":{"connection_name":"a","peer_host":"10.0.0.1"},"prefetch_count":16,"active":true},
				{"consumer_tag":"ours.2","channel_details":{"connection_name":"a","peer_host":"10.0.0.1"},"prefetch_count":32},
				{"consumer_tag":"new","channel_details":[],"prefetch_count":1},
				{"consumer_tag":"old","channel_details":{"connection_name":"b","peer_host":"10.0.0.7"},"prefetch_count":0,"active":false}]}`)
			return
		}
		connections.Add(1)
		if strings.HasSuffix(r.URL.Path, "/a") {
			_, _ = fmt.Fprint(w, `{"client_properties":{"longshore_program":"shop v1.2.0","connection_name":"shop-1","product":"AMQP 0.9.1 Client","version":"1.11.0"}}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"client_properties":{"product":"RabbitMQ","version":"5.20.0"}}`)
	}))
	t.Cleanup(api.Close)
	src := amqp.New("amqp://localhost/", amqp.Config{Management: api.URL}).Queue("orders", amqp.QueueConfig{})
	for range 3 {
		list, err := src.Consumers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list = list.Marked("ours")
		want := "[{ours 10.0.0.1 shop-1 shop v1.2.0 16 false -1 true} {ours.2 10.0.0.1 shop-1 shop v1.2.0 32 false -1 true} {new    1 false -1 false} {old 10.0.0.7  RabbitMQ 5.20.0 0 true -1 false}]"
		if got := fmt.Sprint(list.Consumers); got != want || list.Total != 4 || list.Delivered != 1200 {
			t.Errorf("got  %s, %d, %d\nwant %s", got, list.Total, list.Delivered, want)
		}
	}
	if q, c := queues.Load(), connections.Load(); q != 1 || c > 4 {
		t.Errorf("asked %d times about the queue, %d about connections", q, c)
	}
	_, err := amqp.New("amqp://localhost/", amqp.Config{}).Queue("orders", amqp.QueueConfig{}).Consumers(t.Context())
	var e *longshore.Error
	if !errors.As(err, &e) || e.Code != longshore.CodeUnsupported || !strings.Contains(e.Hint, "Management") {
		t.Errorf("without the API: %v", err)
	}
}

// On RabbitMQ: an old program beside ours is listed with its host, library and prefetch.
func TestConsumersOnRabbitMQ(t *testing.T) {
	url := brokertest.AMQP(t)
	s := &site{direct: url, url: url}
	queue := s.declare(t, amqp.Classic, nil)
	s.publish(t, queue, numbered(4)...)
	src := amqp.New(url, amqp.Config{Management: brokertest.Management(t, url), ConnectionName: "shop-1"}).Queue(queue, amqp.QueueConfig{Tag: "ours", Prefetch: 7})
	c := open(t, src, transport.OpenOptions{})
	c.take(4)
	conn, err := amqp091.DialConfig(url, amqp091.Config{Properties: amqp091.Table{"product": "old shop", "version": "1.0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ch.Qos(3, 0, false), consumeAs(ch, queue, "thief")); err != nil {
		t.Fatal(err)
	}
	last := ""
	t.Cleanup(func() { t.Log("the last list:", last) })
	eventuallyWithin(t, 15*time.Second, "both are listed", func() bool {
		list, err := src.Consumers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		own, others := 0, 0
		for _, l := range list.Marked("ours").Consumers {
			if l.Own && strings.HasPrefix(l.Client, "shop-1") && strings.Contains(l.Product, "amqp.test") && l.Prefetch == 7 && l.Host != "" {
				own++
			}
			if !l.Own && l.ID == "thief" && l.Product == "old shop 1.0" && l.Prefetch == 3 {
				others++
			}
		}
		last = fmt.Sprintf("%+v", list)
		return own == 1 && others == 1 && list.Total == 2 && list.Delivered == 4
	})
}

func consumeAs(ch *amqp091.Channel, queue, tag string) error {
	_, err := ch.Consume(queue, tag, false, false, false, false, nil)
	return err
}
