// Package container runs a handler over a source: it receives, keeps order where
// it is asked to, follows the load with its workers, settles by the handler's
// result, retries, dead-letters, survives the broker's failures, and drains when
// it is stopped.
//
//	broker := memory.New(memory.Config{})
//	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), pay, container.Config{
//		DeadLetter: container.DeadLetter{To: "orders.dlq"}, // 1 to 10 workers, following the load
//	})
//	if err != nil {
//		log.Fatal(err) // everything that is wrong, at once
//	}
//	err = c.Run(ctx) // until ctx ends, then drains
//
// # Reading order
//
// One run, from Start to the end of its drain, is an engine (engine.go), which only wires
// parts together. Each part owns its fields and none knows the engine.
//
//   - What one lock guards is the dispatcher (dispatcher.go): the Scheduler
//     (internal/dispatch), the state as three axes (internal/state), and the plain parts
//     pool.go (workers), intake.go (who receives), linger.go (batches that fill),
//     subscription.go and generation.go (consumers). handout.go has its rules: which
//     worker gets which delivery.
//   - A message's journey: receiver.go takes it from the transport, intake.go sorts it
//     in, handout.go and runner.go give it to a worker, handle.go calls the handler,
//     decide.go decides, settle.go and conclude.go carry that out; redeliver.go and
//     deadletter.go deal with failures.
//   - A subscription's life: supervisor.go decides what to do next, subscribe.go opens,
//     holds.go follows pauses and middlewares, suspend.go leaves the broker while one
//     holds, yield.go gives up a place before the lease ends, withdraw.go gives back
//     partitions that leave.
//   - A stop: lifetimes.go says how long each step may take and calls.go keeps the
//     transport to it; drain.go ends the work, shutdown.go closes and reports.
//   - How many workers: scaling.go and its neighbours sample the run and ask the policy
//     (autoscale); stuck.go and blockedlanes.go watch for calls and lanes that do not
//     get on.
//   - What people see: eventlog.go and events.go, situation.go and diagnosis.go (state,
//     health and the bottleneck are derived there, and nowhere else), stats.go.
package container
