package config

import (
	"context"
	"net/url"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

const anywhere = `
defaults: {dead_letter: {policy: keep}, redelivery: {backoff: {initial: 10ms, max: 10ms}}}
containers:
  orders: {source: mem://orders}
`

// The same file and handler on each broker; one variable chooses it. The first attempt
// fails, so that the file's backoff is used too.
func TestAnotherBrokerIsAnotherVariable(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	aws := sqstest.New(t).Config()
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
	for name, source := range map[string]string{
		"memory":   "mem://orders",
		"rabbitmq": amqptest.New(t).URL + "?queue=orders&declare=classic",
		"kafka":    "kafka://" + cluster.ListenAddrs()[0] + "/orders?group=billing&partitions=1",
		"aws_sqs":  "sqs://orders?declare=true&region=" + url.QueryEscape(aws.Region) + "&endpoint=" + url.QueryEscape(aws.Endpoint),
	} {
		t.Run(name, func(t *testing.T) {
			c := load(t, nowhere("LONGSHORE_CONTAINERS_ORDERS_SOURCE="+source), anywhere)
			seen := make(chan string, 10)
			m, err := c.Manager(Handlers{"orders": longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
				if d.Attempt == 1 {
					return context.DeadlineExceeded
				}
				seen <- d.Origin.Subscription.Transport
				return nil
			})}, Code{Logger: zap.NewNop()})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			publish(t, c, "orders")
			if got := <-seen; got != name {
				t.Errorf("came from %s", got)
			}
			if err := m.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
