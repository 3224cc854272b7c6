package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// sqsLeases holds 5,000 messages for three extensions, with 50 ms for each call
// and a queue of 30 s.
func sqsLeases(_ options, r *report) error {
	const held = 5000
	s, err := sqstest.Start(sqstest.Config{})
	if err != nil {
		return err
	}
	e := newSQSEnd("sqstest", s.URL)
	name, url, err := e.created(context.Background(), false)
	if err == nil {
		err = e.fill(context.Background(), url, held, 0)
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	s.Inject(sqstest.Fault{Latency: 50 * time.Millisecond})
	s.ForgetCalls()
	h, err := holdLeases(s, e, name, held)
	st, cerr := h.c.Stats(), error(nil)
	if cerr = errors.Join(err, s.Close()); cerr != nil {
		return cerr
	}
	r.table("SQS: 5,000 in flight, 50 ms a call, leases of 30 s, held for "+h.took.Round(time.Second).String(), []string{"what", "value"}, [][]string{
		{"calls to extend", strconv.Itoa(h.extensions)},
		{"client and server CPU per message held and second, µs", fmt.Sprintf("%.1f", float64(h.cpu.Microseconds())/held/h.took.Seconds())},
		{"lost", strconv.FormatUint(uint64(st.VerdictLost), 10)},
		{"delivered again", strconv.FormatInt(h.again.Load(), 10)},
	})
	lapsed := int64(st.VerdictLost) + h.again.Load()
	r.bar("sqs 5,000 in flight: leases that lapsed", strconv.FormatInt(lapsed, 10), "0", lapsed == 0)
	return nil
}

type leaseHold struct {
	c              *container.ListenerContainer
	running, again atomic.Int64
	extensions     int
	took, cpu      time.Duration
}

func holdLeases(s *sqstest.Server, e *sqsEnd, name string, held int) (*leaseHold, error) {
	h := &leaseHold{}
	all, end := make(chan struct{}), make(chan struct{})
	broker, _ := e.broker()
	var err error
	h.c, err = container.New(broker.Queue(name, sqs.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		if d.Attempt > 1 {
			h.again.Add(1)
		}
		if h.running.Add(1) == int64(held) {
			close(all)
		}
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}), container.Config{Workers: container.Workers{Min: held, Max: held}, Logger: zap.NewNop()})
	if err != nil {
		return h, err
	}
	if err := h.c.Start(context.Background()); err != nil {
		return h, err
	}
	<-all
	begin, cpu := time.Now(), processCPU()
	<-time.After(40 * time.Second)
	h.took, h.cpu = time.Since(begin), processCPU()-cpu
	h.extensions = s.Count("ChangeMessageVisibilityBatch")
	close(end)
	return h, h.c.Stop(context.Background())
}

// sqsStop stops containers on an empty queue, each with its poll of 20 s open.
func sqsStop(ends []*sqsEnd, o options, r *report) error {
	var rows [][]string
	for _, e := range ends {
		var took []float64
		for range max(o.rounds, 4) {
			d, err := sqsStopped(e)
			if err != nil {
				return err
			}
			took = append(took, float64(d.Microseconds())/1000)
		}
		worst := slices.Max(took)
		rows = append(rows, []string{e.name, spread(took, "%.0f")})
		r.bar("sqs on "+e.name+", stop of an idle container", fmt.Sprintf("%.0f ms", worst), "≤ 300 ms", worst <= 300)
	}
	r.table("SQS: Stop with nothing running and a poll of 20 s open", []string{"server", "ms min / median / max"}, rows)
	return nil
}

func sqsStopped(e *sqsEnd) (took time.Duration, err error) {
	name, url, err := e.created(context.Background(), false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.remove(url)) }()
	broker, calls := e.broker()
	c, err := container.New(broker.Queue(name, sqs.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
		container.Config{Logger: zap.NewNop()})
	if err != nil {
		return 0, err
	}
	if err := c.Start(context.Background()); err != nil {
		return 0, err
	}
	<-calls.polls
	<-time.After(200 * time.Millisecond) // the server has it
	begin := time.Now()
	err = c.Stop(context.Background())
	return time.Since(begin), err
}
