package docs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// outage is a source whose broker can be taken away and given back, with the alarm and the
// all-clear that the log then has.
type outage struct {
	src            transport.Source
	down, up       func()
	alarm, cleared string
}

func outages() map[string]func(t *testing.T) outage {
	return map[string]func(t *testing.T) outage{
		"rabbitmq": func(t *testing.T) outage {
			s := amqptest.New(t)
			return outage{amqp.New(s.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}),
				func() { s.Refuse(); s.Cut(nil) }, func() {
					if err := s.Accept(); err != nil {
						t.Error(err)
					}
				}, "cannot subscribe", "consumer reconnected"}
		},
		"kafka": func(t *testing.T) outage {
			c, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			src := kafka.New(c.ListenAddrs(), kafka.Config{}).Group("billing", []string{"orders"}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 1, Replicas: 1}})
			stop := make(chan struct{})
			refuse := func(req kmsg.Request) (kmsg.Response, error, bool) {
				select {
				case <-stop:
					return nil, nil, false
				default:
				}
				c.KeepControl()
				in, ok := req.(*kmsg.OffsetCommitRequest)
				if !ok {
					return nil, errors.New("no commit"), true
				}
				out, _ := in.ResponseKind().(*kmsg.OffsetCommitResponse)
				for _, topic := range in.Topics {
					to := kmsg.NewOffsetCommitResponseTopic()
					to.Topic, to.TopicID = topic.Topic, topic.TopicID
					for _, p := range topic.Partitions {
						one := kmsg.NewOffsetCommitResponseTopicPartition()
						one.Partition, one.ErrorCode = p.Partition, kerr.UnknownServerError.Code
						to.Partitions = append(to.Partitions, one)
					}
					out.Topics = append(out.Topics, to)
				}
				return out, nil, true
			}
			return outage{src, func() { c.ControlKey(int16(kmsg.OffsetCommit), refuse) }, func() { close(stop) }, "container notice", "container notice cleared"}
		},
		"aws_sqs": func(t *testing.T) outage {
			s := sqstest.New(t)
			src := sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{}}})
			return outage{src, func() { s.Inject(sqstest.Fault{Action: "ReceiveMessage", Code: "ServiceUnavailable", Times: 2}) }, func() {}, "container notice", "container notice cleared"}
		},
	}
}

// On every transport an outage has one alarm and one all-clear of the same level, and no
// line about it comes after that.
func TestOutageEndsInTheLog(t *testing.T) {
	lines, _ := logPage(t)
	for name, make := range outages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := make(t)
			core, logs := observer.New(zapcore.InfoLevel)
			c, err := container.New(o.src, longshore.HandlerFunc(outcomes), container.Config{Logger: zap.New(core, zap.Development(), zap.AddCaller(), zap.AddStacktrace(zapcore.WarnLevel)),
				DeadLetter: container.DeadLetter{To: "orders-dlq"}, Reopen: container.Backoff{Initial: 20 * time.Millisecond, Max: 50 * time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			if name == "aws_sqs" { // a poll that waits would notice in 20 s
				o.down()
			}
			containertest.Start(t, c)
			if name != "aws_sqs" {
				o.down()
			}
			if name == "kafka" { // its commits fail
				containertest.PublishMessages(t, c, &longshore.Message{Body: []byte("ok")})
			}
			seen(t, logs, o.alarm)
			o.up()
			containertest.PublishMessages(t, c, &longshore.Message{Body: []byte("ok")})
			seen(t, logs, o.cleared)
			containertest.WaitIdle(t, c)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.Stop(ctx); err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, l := range logs.All() {
				documented(t, l, lines)
				said = append(said, l.Message)
				if l.Caller.Defined || l.Stack != "" {
					t.Errorf("%s has a caller or a stack", l.Message)
				}
			}
			end := slices.Index(said, o.cleared)
			if end < 0 || slices.Contains(said[end+1:], o.alarm) || slices.Contains(said[end+1:], "consumer lost") || logs.All()[end].Level != logs.FilterMessage(o.alarm).All()[0].Level {
				t.Errorf("%q", said)
			}
		})
	}
}

// A broker that is down at the start is not a lost consumer.
func TestRefusedFirstConnection(t *testing.T) {
	s := amqptest.New(t)
	s.Refuse()
	core, logs := observer.New(zapcore.WarnLevel)
	c, err := container.New(amqp.New(s.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}), longshore.HandlerFunc(outcomes),
		container.Config{Logger: zap.New(core), DeadLetter: container.DeadLetter{To: "orders-dlq"}, Reopen: container.Backoff{Initial: 20 * time.Millisecond, Max: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen(t, logs, "cannot subscribe")
	if err := s.Accept(); err != nil {
		t.Fatal(err)
	}
	seen(t, logs, "container subscribed")
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := logs.All()
	if len(all) != 2 || all[0].Message != "cannot subscribe" || all[0].ContextMap()["attempt"] != int64(1) || all[1].Message != "container subscribed" {
		t.Errorf("%v", all)
	}
}
