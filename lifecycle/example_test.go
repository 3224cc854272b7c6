package lifecycle_test

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore/lifecycle"
)

// Parts start by phase and stop in reverse, whatever the order of the arguments. A service
// calls Main, which also waits for signals.
func ExampleRun() {
	ctx, signal := context.WithCancel(context.Background())
	part := func(name string, phase int, started func()) lifecycle.Component {
		return lifecycle.Hook(name, phase,
			func(context.Context) error { fmt.Println("start", name); started(); return nil },
			func(context.Context) error { fmt.Println("stop", name); return nil })
	}
	err := lifecycle.Run(ctx,
		part("orders", lifecycle.PhaseContainers, signal), // a container: last up, first down
		part("db", lifecycle.PhasePools, func() {}),
		part("publisher", lifecycle.PhasePublishers, func() {}),
	)
	fmt.Println(err)
	// Output:
	// start db
	// start publisher
	// start orders
	// stop orders
	// stop publisher
	// stop db
	// <nil>
}
