// Package demo runs the main job of Longshore where everybody can watch: orders
// are published in a burst and then steadily, handled by key in parallel, retried,
// dead-lettered, throttled, cut off from their broker and drained, on every broker
// at once. All numbers are measured: a ledger knows each order by its number.
//
//	result, err := demo.Run(ctx, demo.Config{For: 15 * time.Second, Show: demo.NewPlain(os.Stderr, nil)})
//	result.Write(os.Stdout)
//
// Brokers are embedded in this process unless Config names an address.
package demo
