// Package sqs is the transport for Amazon SQS, standard and FIFO queues, on the
// AWS SDK for Go.
//
//	broker := sqs.New(sqs.Config{Region: "eu-west-1"}) // empty: the SDK's chain
//	orders := broker.Queue("orders", sqs.QueueConfig{}) // name, URL or ARN
//	c, err := container.New(orders, handler, container.Config{})
//
// A keeper extends the lease (visibility timeout) of every message from its
// receipt until it is settled, in batches, and cancels the handler's context when
// it cannot. Acks are deletes, collected for at most QueueConfig.SettleLinger and
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
// by name lies beside the source: see [Beside].
//
// Tests run on the package sqstest, a server in the process.
package sqs
