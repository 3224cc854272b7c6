// Package dlq reads, replays and removes dead letters on any broker.
//
//	facts := dlq.FactsOf(d)                  // why it is here and where it came from
//	res, err := dlq.Replay(ctx, dlq.Job{Source: dead, Filter: dlq.Filter{Reason: "panic"}})
//
// It knows what our own container writes, RabbitMQ's x-death, the redrive of SQS,
// and the headers of Spring's recoverers.
package dlq
