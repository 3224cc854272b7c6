package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// The environment of a child.
const (
	envPlace    = "TWOBROKERS_PLACE"
	envInstance = "TWOBROKERS_INSTANCE"
)

const workers = 4 // on each broker

var errParent = errors.New("not a child")

// consumeIfChild is a consumer's whole life: two containers with one inbox, usually
// ended by SIGKILL. The end of its input is the wish that it goes when nothing is left.
func consumeIfChild(ctx context.Context) error {
	text := os.Getenv(envPlace)
	if text == "" {
		return errParent
	}
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	s, err := openShop(p)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }()
	rabbit, err := listen(s, "rabbitmq", p.rabbit())
	if err != nil {
		return err
	}
	topic, err := listen(s, "kafka", p.topic(os.Getenv(envInstance)))
	if err != nil {
		return err
	}
	cs := []*container.ListenerContainer{rabbit, topic}
	for _, c := range cs {
		if err := c.Start(ctx); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	wished := make(chan struct{})
	go func() { // ends with the process: its input may never end
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(wished)
	}()
	err = untilIdle(ctx, wished, cs)
	for _, c := range cs {
		err = errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return err
}

func listen(s *shop, broker string, src transport.Source) (*container.ListenerContainer, error) {
	once, err := s.inbox()
	if err != nil {
		return nil, err
	}
	return container.New(src, s.handler(broker), container.Config{Name: broker, Logger: zap.NewNop(),
		Workers: container.Workers{Min: workers, Max: workers}, Middleware: []longshore.Middleware{once},
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}}) // a second effect is what this is about, not a failing handler
}

func untilIdle(ctx context.Context, wished <-chan struct{}, cs []*container.ListenerContainer) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	select {
	case <-wished:
	case <-ctx.Done():
		return nil
	}
	for still := 0; still < 3; { // three times in a row
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		still++
		for _, c := range cs {
			idle, err := c.Idle(ctx)
			if err != nil {
				return err
			}
			if !idle {
				still = 0
			}
		}
	}
	return nil
}
