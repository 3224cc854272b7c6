package amqp

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Replier is a handler that answers requests: what answer returns is published to the
// request's ReplyTo with its correlation id (its id where it has none, as Spring does),
// and the request is acked after that was confirmed. An answer of nil, or a request
// without ReplyTo, sends nothing. A requester that has gone is not a failure: nobody
// waits any more. An error is the verdict as of any handler, and nothing is sent then;
// so an answer may be given twice where a request is delivered twice.
//
// pub is a publisher of the requests' broker, for example of [Broker.Publisher].
func Replier(pub transport.Publisher, answer func(ctx context.Context, d *longshore.Delivery) (*longshore.Message, error)) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		to, correlation := d.ReplyTo, d.CorrelationID
		if correlation == "" {
			correlation = d.ID
		}
		m, err := answer(ctx, d)
		if err != nil || m == nil || to == "" {
			return err
		}
		reply := *m
		reply.CorrelationID = correlation
		err = pub.Publish(ctx, To("", to), &reply)
		var partial *transport.PartialError
		if errors.As(err, &partial) && errors.Is(partial.Failed[0], longshore.CodeUnroutable) {
			return nil
		}
		return err
	})
}
