package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// sqsServers compares sqstest with ElasticMQ: eight clients send ten messages,
// receive up to ten and delete those, by the SDK and by plain requests that cost
// the client little.
func sqsServers(ends []*sqsEnd, o options, r *report) error {
	if err := sqsStart(o, r); err != nil || len(ends) < 2 {
		return err
	}
	for _, c := range []struct {
		name string
		turn sqsTurn
		held bool
	}{{"plain requests", plainTurn, true}, {"AWS SDK", sdkTurn, false}} {
		n := o.count(30_000)
		var vs []variant
		for _, e := range slices.Backward(ends) { // ElasticMQ is the base
			vs = append(vs, variant{e.name, func() (sample, error) { return sqsServed(e, n, c.turn) }})
		}
		ss, err := interleave(o.rounds, vs)
		if err != nil {
			return err
		}
		var rows [][]string
		for i, v := range vs {
			rows = append(rows, []string{v.name, spread(each(ss[i], sample.rate), "%.0f"), spread(ratios(ss[i], ss[0], sample.rate), "%.1f"),
				fmt.Sprintf("%.0f", median(each(ss[i], sample.cpuPer))/1000)})
		}
		r.table(fmt.Sprintf("SQS servers over TCP, eight clients, %s: send, receive and delete %d messages by ten", c.name, n),
			[]string{"server", "msg/s min / median / max", "ratio min / median / max", "client CPU µs/msg"}, rows)
		ratio := median(ratios(ss[1], ss[0], sample.rate))
		if c.held {
			r.bar("sqstest against ElasticMQ, "+c.name, fmt.Sprintf("%.1f ×", ratio), "≥ 5 ×", ratio >= 5)
		}
	}
	return nil
}

// sqsTurn makes a client. Its once sends, receives and deletes, and returns how
// many messages went through.
type sqsTurn func(e *sqsEnd, url string) (once func() (int, error), stop func())

// sqsServed runs eight clients until n messages have gone through.
func sqsServed(e *sqsEnd, n int, turn sqsTurn) (s sample, err error) {
	const clients = 8
	_, url, err := e.created(context.Background(), false)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, e.remove(url)) }()
	turns := make([]func() (int, error), clients)
	for i := range turns {
		var stop func()
		turns[i], stop = turn(e, url)
		defer stop()
	}
	counts, errs := make([]int, clients), make([]error, clients)
	var wg sync.WaitGroup
	w := startWatch()
	for i, once := range turns {
		wg.Go(func() {
			for counts[i] < n/clients && errs[i] == nil {
				var k int
				k, errs[i] = once()
				counts[i] += k
			}
		})
	}
	wg.Wait()
	total := 0
	for _, k := range counts {
		total += k
	}
	return w.stop(total), errors.Join(errs...)
}

func sdkTurn(e *sqsEnd, url string) (once func() (int, error), stop func()) {
	c, t := e.newClient()
	send := &awssqs.SendMessageBatchInput{QueueUrl: &url}
	for i := range 10 {
		send.Entries = append(send.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(strings.Repeat("x", 256))})
	}
	u := &sqsRun{url: url}
	return func() (int, error) {
		ctx := context.Background()
		if _, err := c.SendMessageBatch(ctx, send); err != nil {
			return 0, err
		}
		out, err := c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
		if err != nil {
			return 0, err
		}
		receipts := make([]*string, len(out.Messages))
		for i, m := range out.Messages {
			receipts[i] = m.ReceiptHandle
		}
		return len(receipts), u.deleteBatch(ctx, c, receipts)
	}, t.close
}

// sqsStart is the time from nothing to a server's first answer.
func sqsStart(o options, r *report) error {
	var took []float64
	for range max(20, o.rounds) {
		begin := time.Now()
		s, err := sqstest.Start(sqstest.Config{})
		if err != nil {
			return err
		}
		c, err := dialPlain(s.URL)
		if err == nil {
			_, err = c.call("ListQueues", []byte("{}"))
			took = append(took, float64(time.Since(begin).Microseconds())/1000)
			err = errors.Join(err, c.close())
		}
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	r.table("sqstest: start until the first answer", []string{"ms min / median / max"}, [][]string{{spread(took, "%.2f")}})
	r.bar("sqstest start", fmt.Sprintf("%.2f ms", median(took)), "≤ 5 ms", median(took) <= 5)
	return nil
}
