package kafka_test

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// Consume a topic as a group, in the order of each key.
func ExampleBroker_Group() {
	consumeOne(func(b *kafka.Broker) transport.Source {
		return b.Group("billing", []string{"orders"}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 1, Replicas: 1}})
	}, handlePrint)
	// Output: c-91: o-1
}

// Every instance reads everything; nothing is committed.
func ExampleBroker_Broadcast() {
	consumeOne(func(b *kafka.Broker) transport.Source {
		return b.Broadcast([]string{"orders"}, kafka.BroadcastConfig{Start: kafka.Earliest})
	}, handlePrint)
	// Output: c-91: o-1
}

// What a handler publishes is written in one transaction with the position of its record.
func ExampleTxFrom() {
	consumeOne(func(b *kafka.Broker) transport.Source {
		return b.Group("pricing", []string{"orders"}, kafka.GroupConfig{Transactional: &kafka.Transactional{ID: "pod-1"}})
	}, func(ctx context.Context, d *longshore.Delivery) error {
		if err := handlePrint(ctx, d); err != nil {
			return err
		}
		return kafka.TxFrom(ctx).Publish(ctx, "prices", &longshore.Message{Key: d.Key, Body: []byte("500")})
	})
	// Output: c-91: o-1
}

func handlePrint(_ context.Context, d *longshore.Delivery) error {
	fmt.Printf("%s: %s\n", d.Key, d.Body)
	return nil
}

// consumeOne starts a container on an embedded cluster and publishes one record, which the
// handler prints.
func consumeOne(source func(*kafka.Broker) transport.Source, handler longshore.HandlerFunc) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "prices"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	ctx, done := context.Background(), make(chan struct{})
	broker := kafka.New(cluster.ListenAddrs(), kafka.Config{}) // []string{"k1:9092"}
	pub, err := broker.Publisher(kafka.PublisherConfig{})
	if err == nil {
		err = pub.Publish(ctx, "orders", &longshore.Message{Key: []byte("c-91"), Body: []byte("o-1")})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := container.New(source(broker), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		defer close(done)
		return handler(ctx, d)
	}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, Logger: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	_ = c.Stop(ctx)
	_ = pub.Close(ctx)
}
