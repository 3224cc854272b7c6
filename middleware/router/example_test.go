package router_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/router"
)

// One container for several kinds of messages.
func Example() {
	says := func(text string) longshore.Handler {
		return longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
			fmt.Println(text)
			return nil
		})
	}
	r, err := router.New(router.Config{Unmatched: router.Reject},
		router.Type("order.paid", says("paid")),
		router.RoutingKey("audit.#", says("audit")),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	message := func(typ, routingKey string) *longshore.Delivery {
		d := longshore.NewDelivery(context.Background(), nil, 0)
		d.Type, d.Origin.RoutingKey = typ, routingKey
		return d
	}
	ctx := context.Background()
	_ = r.Handle(ctx, message("order.paid", ""))
	_ = r.Handle(ctx, message("", "audit.login.failed"))
	fmt.Println(longshore.CodeOf(r.Handle(ctx, message("order.shipped", ""))))
	// Output:
	// paid
	// audit
	// no-handler
}
