package faults

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-J01: containers whose logins are refused, and whose brokers are away, from the
// beginning and while they run: the log at its lowest level, events, statistics, reports
// and errors have the password in no form.
func TestNoSecretInWhatAContainerTells(t *testing.T) {
	t.Parallel()
	const canary = "c@nary:s3cret/%?#"
	secret := transport.Static(canary)
	rabbit := amqptest.New(t, amqptest.Config{Users: []amqptest.User{{Name: "app", Password: canary}}})
	queues := sqstest.New(t)
	queues.CreateQueue(t, "orders", nil)
	locked := newFake(t, kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "another"))
	sources := map[string]struct {
		source transport.Source
		after  func() // what happens while it runs
	}{
		"rabbitmq, refused later": {amqp.New("amqp://app:"+url.QueryEscape(canary)+"@"+rabbit.Addr, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}),
			func() { rabbit.SetPassword("app", "changed"); rabbit.Cut(nil) }},
		"rabbitmq, away":     {amqp.New("amqp://127.0.0.1:1", amqp.Config{User: "app", Password: secret}).Queue("orders", amqp.QueueConfig{}), nil},
		"kafka, refused":     {kafka.New(locked.ListenAddrs(), kafka.Config{SASL: kafka.SASL{User: "app", Password: secret}}).Group("g", []string{"orders"}, kafka.GroupConfig{}), nil},
		"kafka, away":        {kafka.New([]string{"127.0.0.1:1"}, kafka.Config{SASL: kafka.SASL{User: "app", Password: secret}}).Group("g", []string{"orders"}, kafka.GroupConfig{}), nil},
		"sqs, refused later": {sqs.New(sqs.Config{Region: "us-east-1", Endpoint: queues.URL, Credentials: sqs.Keys("AKID", secret, secret)}).Queue("orders", sqs.QueueConfig{}), func() { queues.AllowKeys("another") }},
		"sqs, away":          {sqs.New(sqs.Config{Region: "us-east-1", Endpoint: "http://127.0.0.1:1", Credentials: sqs.Keys("AKID", secret, secret)}).Queue("orders", sqs.QueueConfig{}), nil},
	}
	var all sync.WaitGroup
	for what, s := range sources {
		all.Go(func() {
			out := told(t, s.source, s.after)
			for _, form := range []string{canary, url.QueryEscape(canary), url.PathEscape(canary), base64.StdEncoding.EncodeToString([]byte(canary)), "s3cret"} {
				if strings.Contains(out, form) {
					t.Errorf("%s: %q is in\n%s", what, form, out)
				}
			}
			if len(out) < 500 {
				t.Errorf("%s: told next to nothing: %s", what, out)
			}
		})
	}
	all.Wait()
}

// told runs a container that fails and returns all that it says.
func told(t *testing.T, src transport.Source, after func()) string {
	var log safeBuffer
	downs := make(chan struct{}, 2)
	cfg := container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, Reopen: container.Backoff{Initial: 10 * time.Millisecond, Max: 20 * time.Millisecond},
		Logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig()), &log, zapcore.DebugLevel))}
	cfg.OnEvent = func(e container.Event) {
		text, err := json.Marshal(e)
		_, _ = fmt.Fprintf(&log, "%+v %s %v\n", e, text, err)
		if e.Kind == container.EventDown {
			select {
			case downs <- struct{}{}:
			default:
			}
		}
	}
	c, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), cfg)
	if err != nil {
		t.Error(err)
		return ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = c.Start(ctx)
	if err == nil {
		if after != nil {
			after()
		}
		for range cap(downs) {
			select {
			case <-downs:
			case <-ctx.Done():
				t.Errorf("it was not down twice: %+v", c.Stats())
			}
		}
	}
	text, jsonErr := json.Marshal(c.Stats())
	stopped := c.Stop(ctx)
	_, _ = fmt.Fprintf(&log, "%+v %+v %s %v %+v %+v %v", err, c.Stats(), text, jsonErr, stopped, c.Report(), c)
	return log.String()
}

// safeBuffer is a buffer for several who write.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) Sync() error { return nil }

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
