package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// scaleIdle are partitions, queues and containers with nothing to do.
func scaleIdle(o options) ([]dimension, func(), error) {
	s, err := startScaleServers()
	if err != nil {
		return nil, nil, err
	}
	k, stopKafka, err := servedKafka("kfake") // the real one would have thousands of files for it
	if err != nil {
		s.stop()
		return nil, nil, err
	}
	queues := o.sizes(100, 200, 500)
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("longshore-scale-%d-%d", time.Now().UnixNano(), i))
		}
		return all
	}
	return []dimension{
		{"partitions assigned, kfake, one container", o.sizes(100, 1000, 5000), func(n int) (cost, error) {
			t, err := k.created(int32(n)) //nolint:gosec // few
			if err != nil {
				return cost{}, err
			}
			group := t.group()
			return idling(func() error { return t.assigned(group) }, kafka.New(k.addrs, kafka.Config{}).Group(group, []string{t.name}, kafka.GroupConfig{}))
		}},
		{"queues in one container, " + s.amqpName, queues, func(n int) (cost, error) {
			return idling(nil, s.amqp().Queues(autoDelete(), names(n)...))
		}},
		{"containers of one queue each on one broker, " + s.amqpName, queues, func(n int) (cost, error) {
			broker := s.amqp()
			var srcs []transport.Source
			for _, name := range names(n) {
				srcs = append(srcs, broker.Queue(name, autoDelete()))
			}
			return idling(nil, srcs...)
		}},
	}, func() { stopKafka(); s.stop() }, nil
}

// idling returns what a container for each source costs beside an empty process.
func idling(ready func() error, srcs ...transport.Source) (c cost, err error) {
	ctx := context.Background()
	before := costNow(idleWatched)
	var all []*container.ListenerContainer
	for _, src := range srcs {
		l, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
			container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop(), WaitForBroker: true})
		if err != nil {
			return c, err
		}
		all = append(all, l)
	}
	defer func() {
		for _, l := range all {
			err = errors.Join(err, l.Stop(ctx))
		}
	}()
	for _, l := range all {
		if err := l.Start(ctx); err != nil {
			return c, err
		}
	}
	if ready != nil {
		if err := ready(); err != nil {
			return c, err
		}
	}
	<-time.After(3 * time.Second) // what a start leaves behind is not idleness
	return costNow(idleWatched).minus(before), nil
}
