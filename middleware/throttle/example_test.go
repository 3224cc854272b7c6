package throttle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func handler(context.Context, *longshore.Delivery) error { return nil }

// At most five at once, changed while the container runs.
func Example() {
	broker := memory.New(memory.Config{})
	limit := throttle.NewPermits(5)
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(handler), container.Config{Throttle: limit})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := c.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	limit.SetPermits(0) // hold everything, now
	fmt.Println(c.Stats().Permits)
	limit.SetPermits(20)
	limit.SetRate(200) // and at most 200 starts per second
	fmt.Println(limit.Limits())
	limit.Unlimit()
	fmt.Println(limit.Limits())
	if err := c.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0
	// 20 200
	// -1 -1
}

// One delivery of each tenant at a time, whatever the others do.
func ExamplePerKey() {
	perTenant := throttle.PerKey(1, func(d *longshore.Delivery) string { return d.Headers.String("tenant") })
	perTenant.SetKey("big", throttle.Limits{Permits: 10, Rate: -1}) // who pays more
	broker := memory.New(memory.Config{})
	_, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(handler),
		container.Config{Middleware: []longshore.Middleware{perTenant}})
	fmt.Println(err)
	// Output: <nil>
}

// An operator's change ends by itself; what is configured returns.
func ExampleLimiter_Override() {
	limit := throttle.NewPermits(20)
	none := 0
	limit.Override(throttle.Override{Permits: &none, Until: time.Now().Add(10 * time.Minute), By: "anna", Reason: "ledger down"})
	st := limit.State()
	fmt.Println(st.Permits, st.Configured.Permits, st.Operator.By, st.Operator.Reason)
	limit.ClearOverride()
	fmt.Println(limit.State().Permits)
	// Output:
	// 0 20 anna ledger down
	// 20
}

// Two instances of a service share 30 permits.
func ExampleFleet() {
	broker := memory.New(memory.Config{}) // or amqp, or kafka
	control := broker.Broadcast("throttle", memory.BroadcastConfig{Retain: true})
	key := throttle.Key{ID: "2026", Secret: transport.Static("a secret of 16 bytes or more")}
	ctx := context.Background()
	var fleets []*throttle.Fleet
	var limits []*throttle.Limiter
	for _, name := range []string{"shop-1", "shop-2"} {
		limit := throttle.NewPermits(100)
		fleet, err := throttle.NewFleet(control, throttle.FleetConfig{Scope: "shop", Instance: name, Keys: []throttle.Key{key}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fleet.Add("orders", limit) // the container's name
		if err := fleet.Start(ctx); err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = fleet.Stop(ctx) }()
		fleets, limits = append(fleets, fleet), append(limits, limit)
	}
	permits := 30
	issued, err := fleets[0].Issue(ctx, throttle.Directive{Permits: &permits, Share: throttle.Total, Issuer: "anna", Reason: "month end"})
	fmt.Println(issued.Obeyed, err)
	for _, l := range limits {
		n, _ := l.Limits()
		fmt.Println(n)
	}
	// Output:
	// [shop-1 shop-2] <nil>
	// 15
	// 15
}
