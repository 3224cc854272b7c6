package browsertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
)

// With RabbitMQ, Kafka and an SQS server behind it: one page has a row for each, the numbers
// move, a container is paused and resumed, and each view says what its broker knows.
func TestThreeRealBrokers(t *testing.T) {
	t.Parallel()
	rabbitURL, kafkaAddrs, sqsURL := brokertest.AMQP(t), brokertest.Kafka(t), brokertest.SQS(t)
	name := brokertest.Name(t, "console")
	sources := map[string]transport.Source{
		"orders":   amqp.New(rabbitURL, amqp.Config{Management: withLogin(t, rabbitURL, brokertest.Management(t, rabbitURL))}).Queue(name, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}),
		"invoices": kafka.New(kafkaAddrs, kafka.Config{}).Group(name, []string{name}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 3}}),
		"audit":    sqs.New(sqs.Config{Region: "us-east-1", Endpoint: sqsURL, Credentials: sqs.Keys("x", transport.Static("x"), transport.Secret{})}).Queue(name, sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{}}}),
	}
	s := &service{t: t}
	s.cfg = admin.Config{Addr: "127.0.0.1:0", Instance: "shop-1", Operators: map[string]transport.Secret{"anna": transport.Static(token)}, Logger: zap.NewNop()}
	of := map[string]*container.ListenerContainer{}
	for box, src := range sources {
		c, err := container.New(src, longshore.HandlerFunc(done), container.Config{Name: box, Logger: zap.NewNop(), DeadLetter: container.DeadLetter{To: name + "-dead"}})
		must(t, err)
		must(t, c.Start(t.Context()))
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := c.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
		of[box], s.cfg.Containers = c, append(s.cfg.Containers, c)
		pub, dest, err := src.(transport.Outlet).Publisher(t.Context())
		must(t, err)
		feeding, stop := context.WithCancel(context.Background())
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			for i := 0; feeding.Err() == nil; i++ {
				_ = pub.Publish(feeding, dest, &longshore.Message{Key: fmt.Appendf(nil, "c-%d", i%7), Body: []byte(`{"n":1}`)})
				<-time.After(50 * time.Millisecond)
			}
		}()
		t.Cleanup(func() { stop(); <-fed; _ = pub.Close(context.Background()) })
	}
	s.open()
	p := s.logIn("")
	p.within(30*time.Second, `[...document.querySelectorAll('.item')].filter((e) => /RabbitMQ|Kafka|SQS/.test(e.innerText) && parseFloat(e.querySelector('.c2').textContent) > 0).length === 3`)
	for box, texts := range map[string][]string{
		"orders":   {"vhost", "our share of what arrives is", "● this instance", "Messages per second"},
		"invoices": {name + "/2", "committed to", "our share of what arrives is 100 %"},
		"audit":    {"SQS · queue " + name},
	} {
		js[any](p, "location.hash = '/c/"+box+"'")
		for _, text := range texts {
			p.within(30*time.Second, fmt.Sprintf("document.body.innerText.includes(%q)", text))
		}
		p.click("Pause")
		p.click("Pause now")
		p.shows("paused by anna")
		if st := of[box].State(); st != container.StatePaused {
			t.Errorf("the page says that %s is paused, it is %v", box, st)
		}
		p.click("Resume")
		p.until("document.querySelector('h1 + .badge').innerText.includes('running')")
	}
}
