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
// The files follow a message's journey: intake.go receives, lanes.go keeps order,
// workers.go hands out, verdict.go judges the handler's result, retry.go and
// deadletter.go deal with failures; supervise.go keeps the subscription alive and
// drain.go ends it.
package container
