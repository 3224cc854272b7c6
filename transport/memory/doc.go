// Package memory is the in-process transport: a broker that lives in this
// process and keeps nothing on disk. Tests, examples and the demo run on it, and
// it is the reference for what a transport must do.
//
//	broker := memory.New(memory.Config{})
//	orders := broker.Queue("orders", memory.QueueConfig{})
//	pub, err := broker.Publisher(memory.PublisherConfig{})
//	if err != nil {
//		return err
//	}
//	err = pub.Publish(ctx, "orders", &longshore.Message{Body: []byte("hello")})
//
// It has every capability of the contract, and [QueueConfig] switches each of
// them on or off: leases, message groups, partitions, a delivery limit, a
// dead-letter queue, one active consumer, batched settlements.
//
// Faults are provoked with [Broker.Drop], [Broker.Delay], [Broker.FailOpen],
// [Broker.FailSettle] and [Broker.FailPublish]; [Broker.Inspect] shows what a
// queue holds. Time comes from [Config.Clock], or from the system, which works
// in testing/synctest.
//
// It is the transport to read first. In reading order:
//
//	config.go, source.go   what a user sets, and how a subscription opens
//	broker.go              the queues by name; one lock guards everything
//	queue.go               what a queue holds, groups and the delivery limit
//	roster.go, delayed.go  whose turn it is; delays and leases by their end
//	consumer.go            from the queue to Receive
//	inflight.go            what a consumer holds: slots, tokens, the buffer
//	settle.go              verdicts and what they do to the queue
//	settlement.go          verdicts that were accepted and wait to be carried out
//	shutdown.go            Cancel, Release, Flush, Close and cut connections
//	faults.go, inspect.go  what tests provoke and look at
package memory
