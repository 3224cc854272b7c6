//go:build unix

package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// faults are what can be done to a Kafka cluster only. a and other are two of its brokers.
func (b kafkaCluster) faults(n *nodes, a, other *node) []fault {
	return []fault{
		{"all partitions get another leader: " + a.name, true, func(ctx context.Context) error {
			return b.assign(ctx, []int32{a.id(), other.id(), 6 - a.id() - other.id()})
		}},
		{"all partitions leave a broker, and come back: " + a.name, true, func(ctx context.Context) error {
			third := 6 - a.id() - other.id()
			n.undo(func() error { return b.assign(context.WithoutCancel(ctx), []int32{other.id(), third, a.id()}) })
			return b.assign(ctx, []int32{other.id(), third})
		}},
	}
}

// memory is none: a topic is on disk.
func (kafkaCluster) memory(context.Context) (float64, error) { return 0, nil }

// id is the broker's own.
func (o *node) id() int32 { return int32(o.name[len(o.name)-1] - '0') }

// assign gives all partitions these replicas, and makes the first one their leader.
func (b kafkaCluster) assign(ctx context.Context, replicas []int32) error {
	adm, err := b.admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	req := kadm.AlterPartitionAssignmentsReq{}
	for p := range int32(6) {
		req.Assign(place, p, slices.Clone(replicas))
	}
	done, err := adm.AlterPartitionAssignments(ctx, req)
	if err == nil {
		err = done.Error()
	}
	if err != nil {
		return err
	}
	for range 30 { // until the replicas have what they need
		moving, err := adm.ListPartitionReassignments(ctx, kadm.TopicsSet{place: nil})
		if err != nil {
			return err
		}
		if len(moving) == 0 {
			break
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	_, err = adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, kadm.TopicsSet{place: nil})
	return err
}

// upgrade restarts brokers in turn with the version that scripts/brokers has by default,
// where the run began with another one (KAFKA_NODE_VERSION).
func (n *nodes) upgrade(ctx context.Context) error {
	if err := os.Unsetenv(versionVariable); err != nil {
		return err
	}
	n.old = "" // once
	for _, one := range n.all {
		if err := n.restart(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// versionVariable is the version that scripts/brokers starts Kafka nodes with.
const versionVariable = "KAFKA_NODE_VERSION"
