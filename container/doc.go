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
//   - The dispatcher (dispatcher.go) makes what one lock guards, and every other part gets
//     only those of it that it works with: the Scheduler (internal/dispatch), the three axes
//     (internal/state), and plain parts without a lock: pool.go (workers), intake.go (who
//     receives), gate.go (permits), linger.go (batches that fill), parking.go (retries that
//     wait), subscription.go and generation.go (consumers). handout.go decides which worker
//     gets which delivery; stock.go has what is held. Only guard.locked and guard.unlocked
//     touch the lock; signals.go is how goroutines wait for each other.
//   - A message's journey: receiver.go takes it from the transport and sorts it in, runner.go
//     gives it to a worker, handle.go calls the handler, decide.go decides, settle.go and
//     conclude.go carry the decision out; redeliver.go and deadletter.go deal with failures.
//   - A subscription's life: supervisor.go decides what to do next, subscribe.go opens,
//     holds.go follows pauses, middlewares and the throttle, suspend.go leaves the broker
//     while a middleware holds, yield.go gives up a place before the lease ends, withdraw.go
//     gives back partitions that leave, requeue.go and drop.go end what the broker took back.
//   - A stop: lifetimes.go has the deadlines and calls.go keeps the transport to them;
//     drain.go ends the work, shutdown.go closes and reports.
//   - What the transport is asked for can fail: request.go and generation.go keep what was
//     asked for and not done, supervisor.go and scaling.go repeat it.
//   - How many workers: scaling.go and its neighbours sample the run and ask the policy
//     (autoscale); stuck.go and blockedlanes.go look for calls and lanes without progress.
//   - Configuration: config.go (public), resolve*.go and validate.go (checked once, into
//     settings); hooks.go finds what middlewares want besides the handler's calls.
//   - Several sources: group.go is a container for each of them, groupstop.go stops them in
//     two steps.
//   - What operators do: operator.go (one record), reconnect.go, seek.go, Scale and Pause.
//   - What people see: observer.go hears the transport, eventlog.go and events.go, inflight.go (what is held), situation.go
//     and diagnosis.go (state, health and the bottleneck are derived only there), stats.go.
package container
