package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
)

// jvmSQS is beside Spring Cloud AWS.
func jvmSQS(o options, r *report) error {
	url := os.Getenv("SQS_ENDPOINT")
	if url == "" {
		fmt.Println("\njvm/sqs: not run, needs SQS_ENDPOINT")
		return nil
	}
	end := newSQSEnd("ElasticMQ", url)
	n := o.count(10_000)
	for _, work := range []time.Duration{0, 5 * time.Millisecond} {
		j := jvmJob{address: url, workers: sqsWorkers, warm: n, n: n, work: work}
		vs := []variant{
			{"longshore", j.onSQS(end, func(j jvmJob) (sample, error) {
				broker, _ := end.broker()
				return j.longshore(broker.Queue(j.from, sqs.QueueConfig{MaxPollers: sqsPolls}), container.Unordered)
			})},
			{"spring-cloud-aws-sqs", j.onSQS(end, func(j jvmJob) (sample, error) { return j.java("sqs-spring") })},
		}
		vs = j.withTimer(vs)
		ss, err := interleave(o.rounds, vs)
		if err != nil {
			return err
		}
		jvmTable(r, j.title("SQS on "+end.name+", 10 polls,"), vs, ss)
	}
	return nil
}

// onSQS fills a queue of the run's own, runs f and removes the queue.
func (j jvmJob) onSQS(end *sqsEnd, f func(jvmJob) (sample, error)) func() (sample, error) {
	return func() (s sample, err error) {
		ctx := context.Background()
		name, url, err := end.created(ctx, false)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, end.remove(url)) }()
		if err := end.fill(ctx, url, j.all(), 0); err != nil {
			return s, err
		}
		j.from = name
		return f(j)
	}
}
