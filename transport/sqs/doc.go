// Package sqs is the transport for Amazon SQS, standard and FIFO queues, on the
// AWS SDK for Go.
//
//	broker := sqs.New(sqs.Config{Region: "eu-west-1"}) // empty: the SDK's chain
//	orders := broker.Queue("orders", sqs.QueueConfig{}) // name, URL or ARN
//	c, err := container.New(orders, handler, container.Config{})
//
// The lease (visibility timeout) of every message is extended from its receipt until it
// is settled, in batches; the handler's context is cancelled when that fails. Acks are deletes, collected for at most QueueConfig.SettleLinger and
// ten at a time. As many long polls run as the load needs, one when idle.
//
// Delivery.Native is the *types.Message of the SDK.
//
// Region, endpoint and credentials are found in this order, the first that says
// something wins:
//
//	region       Config.Region; the queue's ARN or URL; AWS_REGION, profile (the SDK's chain)
//	endpoint     Config.Endpoint; AWS_ENDPOINT_URL_SQS, AWS_ENDPOINT_URL, profile; the
//	             host of a queue given as URL, or of the broker's other queues if all of
//	             them are on one host that is not AWS; the region's
//	credentials  Config.Credentials; AWS_ACCESS_KEY_ID …, profile, role (the SDK's chain)
//
// A dead-letter queue, and any other destination of a source's own publisher, that is given
// by name lies alongside the source: see [Beside].
//
// Tests run on the package sqstest, a server in the process.
//
// In reading order:
//
//	config.go, queue.go        what a user sets
//	broker.go, address.go      clients, and where the calls for a queue go (origin.go)
//	queuehandle.go             a queue that was found, or declared
//	consumer.go                a subscription: wires the parts below together
//	receive.go, settle.go      its way in, from a poll to Receive; its way out, from a
//	                           verdict to the answer
//	poller.go                  how many polls are open, and when they are cut off
//	arrival.go, attempts.go    from a message to a delivery; which attempt it is
//	fifo.go                    what waits for Receive, group by group
//	held.go, visibility.go     what is held, and its leases (copies.go: further receipts)
//	batcher.go                 settlements on their way
//	calls.go, batchresult.go   the calls and their answers
//	reports.go                 what the observer hears
//	publisher.go               sends
//	internal/codec             messages to SQS messages and back
//
// The parts poller, fifo, visibility and batcher make no calls, read no clock and know
// nothing of each other.
package sqs
