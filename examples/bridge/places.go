package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge/workflow"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// where the brokers are, and how long the service works.
type where struct {
	amqp  string
	kafka []string
	name  string // of queue, topic, group and route
	rate  int
	work  time.Duration
}

// places are both ends of the move.
type places struct {
	from, to               transport.Source
	lettersFrom, lettersTo transport.Source
	seed                   workflow.Seed
	oldSide, newSide       *outlet
	closers                []func() error
}

// places makes queues and topics, with five dead letters on the old side.
func (w where) places(ctx context.Context) (p *places, err error) {
	p = &places{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if err := p.embed(&w); err != nil {
		return p, err
	}
	rabbit, topics := amqp.New(w.amqp, amqp.Config{}), kafka.New(w.kafka, kafka.Config{})
	quorum, three := amqp.Declare{Type: amqp.Quorum}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 3}}
	p.from = rabbit.Queue(w.name, amqp.QueueConfig{Declare: quorum})
	p.lettersFrom = rabbit.Queue(w.name+".dlq", amqp.QueueConfig{Declare: quorum})
	p.to = topics.Group(w.name+"-shop", []string{w.name}, kafka.GroupConfig{})
	p.lettersTo = topics.Group(w.name+"-letters", []string{w.name + "-dlq"}, three)
	p.seed = topics.Seed(w.name+"-shop", w.name)
	made := topics.Group(w.name+"-made", []string{w.name}, three)
	parked := rabbit.Queue(w.name+".parked", amqp.QueueConfig{Declare: quorum})
	for _, s := range []transport.Source{p.from, p.lettersFrom, p.lettersTo, made, parked} {
		c, err := s.Open(ctx, transport.OpenOptions{Window: 1, Paused: true})
		if err != nil {
			return p, err
		}
		if err := c.Close(ctx); err != nil {
			return p, err
		}
	}
	if p.oldSide, err = p.outlet(ctx, p.from); err != nil {
		return p, err
	}
	if p.newSide, err = p.outlet(ctx, p.to); err != nil {
		return p, err
	}
	for n := range 5 {
		if err := p.oldSide.pub.Publish(ctx, w.name+".dlq", &longshore.Message{ID: fmt.Sprint("dead-", n)}); err != nil {
			return p, err
		}
	}
	return p, nil
}

// embed starts the brokers that were not named.
func (p *places) embed(w *where) error {
	if w.amqp == "" {
		s, err := amqptest.Start(amqptest.Config{})
		if err != nil {
			return err
		}
		w.amqp, p.closers = s.URL, append(p.closers, s.Close)
	}
	if len(w.kafka) == 0 {
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return err
		}
		w.kafka, p.closers = c.ListenAddrs(), append(p.closers, func() error { c.Close(); return nil })
	}
	return nil
}

func (p *places) outlet(ctx context.Context, s transport.Source) (*outlet, error) {
	o, ok := s.(transport.Outlet)
	if !ok {
		return nil, errors.New("it has no publisher")
	}
	pub, dest, err := o.Publisher(ctx)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() error { return pub.Close(context.WithoutCancel(ctx)) })
	return &outlet{pub, dest}, nil
}

func (p *places) close() (err error) {
	for i := len(p.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, p.closers[i]())
	}
	return err
}
