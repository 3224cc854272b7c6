package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.uber.org/zap"
	"gocloud.dev/pubsub/awssnssqs"
	"gocloud.dev/pubsub/batcher"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
)

// sqsJob is a filled queue that is worked off.
type sqsJob struct {
	end    *sqsEnd
	n      int
	groups int // 0 = a standard queue
	work   time.Duration
}

// sqsRun is one run of a job.
type sqsRun struct {
	sqsJob
	name, url string
	left      atomic.Int64
	done      chan struct{} // all were handled

	mu    sync.Mutex
	last  map[string]int // of each group
	wrong int            // messages that came before an earlier one of their group
}

// on makes a queue, fills it, runs f and removes the queue. f returns the sample
// and the number of calls.
func (j sqsJob) on(f func(*sqsRun) (sample, int64, error)) func() (sample, float64, error) {
	return func() (s sample, perMessage float64, err error) {
		ctx := context.Background()
		u := &sqsRun{sqsJob: j, done: make(chan struct{}), last: map[string]int{}}
		u.left.Store(int64(j.n))
		if u.name, u.url, err = j.end.created(ctx, j.groups > 0); err != nil {
			return s, 0, err
		}
		defer func() { err = errors.Join(err, j.end.remove(u.url)) }()
		if err := j.end.fill(ctx, u.url, j.n, j.groups); err != nil {
			return s, 0, err
		}
		s, calls, err := f(u)
		if u.wrong > 0 {
			err = errors.Join(err, fmt.Errorf("%d messages out of order", u.wrong))
		}
		return s, float64(calls) / float64(j.n), err
	}
}

// handle is the handler of all variants.
func (u *sqsRun) handle(body string) {
	if u.groups > 0 {
		u.order(body)
	}
	<-time.After(u.work)
	if u.left.Add(-1) == 0 {
		close(u.done)
	}
}

func (u *sqsRun) order(body string) {
	group, rest, _ := strings.Cut(body, " ")
	text, _, _ := strings.Cut(rest, " ")
	i, err := strconv.Atoi(text)
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.last[group]; err != nil || ok && i < last {
		u.wrong++
	}
	u.last[group] = i
}

func (u *sqsRun) longshore() (sample, int64, error) {
	broker, calls := u.end.broker()
	c, err := container.New(broker.Queue(u.name, sqs.QueueConfig{MaxPollers: sqsPolls}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		u.handle(string(d.Body))
		return nil
	}), container.Config{Workers: container.Workers{Min: sqsWorkers, Max: sqsWorkers}, Logger: zap.NewNop()})
	if err != nil {
		return sample{}, 0, err
	}
	w := startWatch()
	if err := c.Start(context.Background()); err != nil {
		return sample{}, 0, err
	}
	<-u.done
	s := w.stop(u.n)
	err = c.Stop(context.Background())
	return s, calls.calls.Load(), err
}

// loop is what one writes by hand: polls hand to goroutines over a channel, and
// their receipts are collected and deleted by ten.
func (u *sqsRun) loop() (sample, int64, error) {
	client, calls := u.end.newClient()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	work, receipts := make(chan types.Message), make(chan *string, sqsWorkers)
	var polls, workers, deletes sync.WaitGroup
	failures := make(chan error, 2*sqsPolls)
	w := startWatch()
	for range sqsPolls {
		polls.Go(func() { failures <- u.poll(ctx, client, work) })
		deletes.Go(func() { failures <- u.deleteAll(ctx, client, receipts) })
	}
	for range sqsWorkers {
		workers.Go(func() {
			for m := range work {
				u.handle(*m.Body)
				receipts <- m.ReceiptHandle
			}
		})
	}
	var err error
	select {
	case <-u.done:
	case err = <-failures:
	}
	s := w.stop(u.n)
	stop()
	polls.Wait()
	close(work)
	workers.Wait()
	close(receipts)
	deletes.Wait()
	close(failures)
	for e := range failures {
		err = errors.Join(err, e)
	}
	return s, calls.calls.Load(), err
}

func (u *sqsRun) receive(ctx context.Context, c *awssqs.Client) ([]types.Message, error) {
	out, err := c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: &u.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	switch {
	case ctx.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return out.Messages, nil
}

func (u *sqsRun) poll(ctx context.Context, c *awssqs.Client, work chan<- types.Message) error {
	for ctx.Err() == nil {
		ms, err := u.receive(ctx, c)
		if err != nil {
			return err
		}
		for _, m := range ms {
			select {
			case work <- m:
			case <-ctx.Done():
				return nil
			}
		}
	}
	return nil
}

func (u *sqsRun) deleteAll(ctx context.Context, c *awssqs.Client, receipts <-chan *string) error {
	for open := true; open; {
		var batch []*string
		for open && len(batch) < 10 {
			var r *string
			if r, open = <-receipts; open {
				batch = append(batch, r)
			}
		}
		if err := u.deleteBatch(ctx, c, batch); err != nil {
			return err
		}
	}
	return nil
}

func (u *sqsRun) deleteBatch(ctx context.Context, c *awssqs.Client, receipts []*string) error {
	if len(receipts) == 0 {
		return nil
	}
	in := &awssqs.DeleteMessageBatchInput{QueueUrl: &u.url}
	for i, r := range receipts {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: r})
	}
	out, err := c.DeleteMessageBatch(context.WithoutCancel(ctx), in)
	if err == nil && len(out.Failed) > 0 {
		err = fmt.Errorf("%d deletes failed: %s", len(out.Failed), aws.ToString(out.Failed[0].Message))
	}
	return err
}

// fifoLoop works off what a poll brought before it polls again.
func (u *sqsRun) fifoLoop() (sample, int64, error) {
	client, calls := u.end.newClient()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var polls sync.WaitGroup
	failures := make(chan error, sqsPolls)
	w := startWatch()
	for range sqsPolls {
		polls.Go(func() {
			for ctx.Err() == nil {
				if err := u.fifoTurn(ctx, client); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	var err error
	select {
	case <-u.done:
	case err = <-failures:
	}
	s := w.stop(u.n)
	stop()
	polls.Wait()
	return s, calls.calls.Load(), err
}

func (u *sqsRun) fifoTurn(ctx context.Context, c *awssqs.Client) error {
	ms, err := u.receive(ctx, c)
	if err != nil {
		return err
	}
	groups := map[string][]types.Message{}
	receipts := make([]*string, len(ms))
	for i, m := range ms {
		groups[m.Attributes["MessageGroupId"]] = append(groups[m.Attributes["MessageGroupId"]], m)
		receipts[i] = m.ReceiptHandle
	}
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() {
			for _, m := range g {
				u.handle(*m.Body)
			}
		})
	}
	wg.Wait()
	return u.deleteBatch(ctx, c, receipts)
}

// gocloud is gocloud's subscription with as many polls, deletes and goroutines.
func (u *sqsRun) gocloud() (sample, int64, error) {
	client, calls := u.end.newClient()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	w := startWatch()
	sub := awssnssqs.OpenSubscription(ctx, client, u.url, &awssnssqs.SubscriptionOptions{Raw: true, WaitTime: 20 * time.Second,
		ReceiveBatcherOptions: batcher.Options{MaxHandlers: sqsPolls}, AckBatcherOptions: batcher.Options{MaxHandlers: sqsPolls}})
	var workers sync.WaitGroup
	for range sqsWorkers {
		workers.Go(func() {
			for {
				m, err := sub.Receive(ctx)
				if err != nil {
					return
				}
				u.handle(string(m.Body))
				m.Ack()
			}
		})
	}
	<-u.done
	s := w.stop(u.n)
	stop()
	workers.Wait()
	limited, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = sub.Shutdown(limited) // an open poll of its own may outlast it
	return s, calls.calls.Load(), nil
}
