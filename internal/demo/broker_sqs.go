package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

func sqsRig(cfg Config) (*rig, error) {
	r := &rig{name: "sqs", label: "sqstest"}
	var own sqs.Config
	if cfg.SQS == "" {
		server, err := sqstest.Start(sqstest.Config{CallLog: -1})
		if err != nil {
			return nil, err
		}
		own, r.stop = server.Config(), server.Close
	} else {
		own = atEndpoint(cfg.SQS)
		r.label = "sqs at " + own.Endpoint
	}
	wire := newCutter()
	pool := &http.Transport{DialContext: wire.dial, Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 32}
	own.HTTPClient = &http.Client{Transport: pool}
	broker := sqs.New(own)
	// Only FIFO queues keep an order. A dot is in no other place of a name.
	orders := fmt.Sprintf("longshore-demo-%d-orders.fifo", cfg.Seed)
	dead := fmt.Sprintf("longshore-demo-%d-orders-dlq.fifo", cfg.Seed)
	r.source = broker.Queue(orders, sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{}}})
	r.dead, r.deadTo = broker.Queue(dead, sqs.QueueConfig{}), dead
	// A receive from a FIFO queue brings up to ten messages of one group: to give
	// each worker a group of its own that many more have to be here.
	r.lookahead = 10 * workersMax
	r.cut = wire.cut
	r.remove = func(ctx context.Context) error {
		defer pool.CloseIdleConnections()
		return deleteSQS(ctx, own, orders, dead)
	}
	return r, nil
}

// atEndpoint takes region and credentials from the SDK's chain for Amazon itself;
// emulators take any.
func atEndpoint(endpoint string) sqs.Config {
	c := sqs.Config{Endpoint: endpoint}
	if u, err := url.Parse(endpoint); err == nil && !strings.HasSuffix(u.Hostname(), ".amazonaws.com") {
		c.Region = "us-east-1"
		c.Credentials = sqs.Keys("demo", transport.Static("demo"), transport.Secret{})
	}
	return c
}

// deleteSQS uses the client itself: no source deletes.
func deleteSQS(ctx context.Context, cfg sqs.Config, names ...string) error {
	client := awssqs.New(awssqs.Options{Region: cfg.Region, Credentials: cfg.Credentials, BaseEndpoint: aws.String(cfg.Endpoint), HTTPClient: cfg.HTTPClient})
	var errs []error
	for _, name := range names {
		found, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: aws.String(name)})
		if err == nil {
			_, err = client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: found.QueueUrl})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
