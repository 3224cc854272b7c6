// Package bridge moves messages from one broker to another while both are in use, and proves
// afterwards that nothing was lost.
//
//	ledger, err := bridge.OpenLedger("./ledger")
//	route, err := bridge.New(bridge.Config{
//		From:   rabbit.Queue("orders", amqp.QueueConfig{Key: amqp.KeyFromHeader("customer-id")}),
//		To:     kafkas.Group("shop", kafka.GroupConfig{Topics: []string{"orders"}}), // only published to
//		Ledger: ledger,
//	})
//	lifecycle.Main(route) // until Ctrl-C; then: bridge.Verify(ctx, "./ledger", nil)
//
// A [Route] is a container whose handler publishes: it keeps the order of each key, follows
// the load, can be paused, scaled and throttled, and drains. A message is acknowledged at the
// source once the target has confirmed it. What a crash repeats has the same identity
// ([longshore.HeaderID]), so a consumer with an inbox applies each effect once.
//
//   - An outage of the target stops the intake; no message loses an attempt by it.
//   - A message that the target refuses for good is parked on the source's broker with the
//     reason, and later messages of its key are parked behind it.
//   - Two routes in opposite directions do not send a message round: see [longshore.HeaderVia].
//
// The files in reading order: route.go (settings and life), forwarder.go (what happens to one
// message), decide.go (the rule), via.go and digest.go (how a loop is recognised), identity.go,
// verify.go. internal/ledger is the record on disk.
package bridge
