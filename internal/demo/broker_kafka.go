package demo

import (
	"context"
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport/kafka"
)

const kafkaPartitions = 4

func kafkaRig(cfg Config) (*rig, error) {
	r := &rig{name: "kafka", label: "kfake, 4 partitions"}
	addrs := cfg.Kafka
	if len(addrs) == 0 {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return nil, err
		}
		addrs = cluster.ListenAddrs()
		r.stop = func() error { cluster.Close(); return nil }
	} else {
		r.label = "kafka at " + strings.Join(addrs, ",")
	}
	wire := newCutter()
	broker := kafka.New(addrs, kafka.Config{ClientID: "longshore demo", Options: []kgo.Opt{kgo.Dialer(wire.dial)}})
	orders, dead := queueNames(cfg.Seed)
	group := orders
	declare := kafka.Declare{Partitions: kafkaPartitions}
	r.source = broker.Group(group, []string{orders}, kafka.GroupConfig{Declare: declare})
	r.dead, r.deadTo = broker.Group(group+".audit", []string{dead}, kafka.GroupConfig{Declare: declare}), dead
	r.made, r.seed = broker.Group(group+".made", []string{orders}, kafka.GroupConfig{Declare: declare}), broker.Seed(group, orders)
	r.cut = wire.cut
	r.remove = func(ctx context.Context) error {
		return deleteTopics(ctx, addrs, []string{group, group + ".audit", group + ".made"}, orders, dead)
	}
	return r, nil
}

// deleteTopics uses the client itself: no source deletes.
func deleteTopics(ctx context.Context, addrs, groups []string, topics ...string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err1 := admin.DeleteGroups(ctx, groups...)
	gone, err2 := admin.DeleteTopics(ctx, topics...)
	return errors.Join(err1, err2, gone.Error())
}
