package main

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// finish names the Kafka groups that the bridge made, and none that does not exist.
func TestFinishNamesTheGroupsOfTheBridge(t *testing.T) {
	t.Parallel()
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	b := kafka.New(k.ListenAddrs(), kafka.Config{})
	lock := b.Group("longshore.bridge.orders.move", []string{"orders"}, kafka.GroupConfig{})
	r := &config.Route{Lock: lock, Parked: b.Group("longshore-bridge.orders.parked", []string{"orders"}, kafka.GroupConfig{})}
	if all := ownGroups(t.Context(), r); len(all) != 0 {
		t.Errorf("before the move: %+v", all)
	}
	c, err := lock.Open(t.Context(), transport.OpenOptions{Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	var all []leftover
	for end := time.Now().Add(10 * time.Second); len(all) == 0 && time.Now().Before(end); { // it takes a moment to join
		<-time.After(20 * time.Millisecond)
		all = ownGroups(t.Context(), r)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	want := "kafka-consumer-groups.sh --bootstrap-server " + strings.Join(k.ListenAddrs(), ",") + " --delete --group longshore.bridge.orders.move"
	if len(all) != 1 || all[0].Command != want || !strings.Contains(all[0].What, `"longshore.bridge.orders.move"`) {
		t.Errorf("%+v, want %s", all, want)
	}
}
