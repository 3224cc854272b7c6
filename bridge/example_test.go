package bridge_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// A route moves what is in a queue to another broker, and its ledger proves it.
func ExampleNew() {
	ctx := context.Background()
	old, target := memory.New(memory.Config{Name: "old"}), memory.New(memory.Config{Name: "new"})
	pub, _ := old.Publisher(memory.PublisherConfig{})
	for i := range 3 {
		_ = pub.Publish(ctx, "orders", &longshore.Message{ID: fmt.Sprint("order-", i), Key: []byte("customer-7"), Body: []byte("paid")})
	}
	dir, _ := os.MkdirTemp("", "ledger")
	defer func() { _ = os.RemoveAll(dir) }()
	ledger, err := bridge.OpenLedger(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	route, err := bridge.New(bridge.Config{
		From: old.Queue("orders", memory.QueueConfig{}), To: target.Queue("orders", memory.QueueConfig{}),
		Ledger: ledger, Container: container.Config{Logger: zap.NewNop()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = route.Start(ctx)
	for route.Stats().Forwarded < 3 {
		<-time.After(time.Millisecond)
	}
	_ = route.Stop(ctx)
	_ = ledger.Close()
	account, _ := bridge.Verify(ctx, dir, nil)
	fmt.Println(account)
	// Output:
	// content  3 taken, 3 confirmed
	//          missing 0, extra 0, changed 0, copies 0, parked 0, looped 0, without identity 0
	// order    1 keys, 0 inversions of first copies
}
