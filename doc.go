// Package longshore holds the words that every part of Longshore shares: the
// [Message], the [Delivery] and its verbs, the [Handler], the [Middleware], the
// verdicts a handler can return and the errors that tell what went wrong.
//
// A handler is written once and runs on RabbitMQ, Kafka, SQS or in memory:
//
//	pay := longshore.Typed(longshore.JSON{}, func(ctx context.Context, o Order, d *longshore.Delivery) error {
//		switch err := bank.Charge(ctx, o); {
//		case errors.Is(err, ErrBusy):
//			return longshore.Retry(err, 30*time.Second) // not before 30 s; counts as an attempt
//		case errors.Is(err, ErrNoSuchCard):
//			return longshore.Reject(err) // never again: dead-letter now
//		default:
//			return err // nil acks; others are retried with backoff
//		}
//	})
//
// What runs it is container.ListenerContainer; where messages come from is a
// transport.Source. This package depends on the standard library only.
//
// # Which call returns which error
//
//   - [Delivery.Ack], [Delivery.Nack], [Delivery.Reject], [Delivery.Extend]: nil when
//     the settlement was accepted; [ErrSettled] when the delivery was settled before;
//     [ErrLost] when the broker has taken it back; [ErrClosed] when the consumer is
//     closed. A verb that the broker cannot do returns an [Error] with
//     [CodeUnsupported], and the delivery stays open.
//   - transport.Consumer.Receive: [ErrCanceled] once Cancel was called and the buffer
//     is empty, [ErrClosed] after Close, the context's error, or an [Error] that
//     says why the consumer ended.
//   - A handler's context is cancelled with the cause [ErrLost] when the delivery no
//     longer belongs to this process, and [ErrStopping] when the drain deadline of
//     the container has passed.
//
// Every failure that has a remedy is an [*Error]; its [Code] is stable and works
// with errors.Is.
package longshore
