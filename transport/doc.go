// Package transport is the contract between a container and a broker: a
// [Source] opens a [Consumer], a [Publisher] sends. It holds no logic.
//
// A transport of your own needs two methods for a source and five for a
// consumer; transporttest.Run reports whether they keep the contract:
//
//	func (s *source) Open(_ context.Context, o transport.OpenOptions) (transport.Consumer, error) {
//		return &consumer{in: s.in, base: o.Base}, nil
//	}
//
//	func (c *consumer) Receive(ctx context.Context, max int) ([]*longshore.Delivery, error) {
//		select {
//		case m := <-c.in:
//			c.seq++
//			d := longshore.NewDelivery(c.base, c, c.seq) // c settles it, by token
//			d.Message = m
//			return []*longshore.Delivery{d}, nil
//		case <-ctx.Done():
//			return nil, ctx.Err()
//		}
//	}
//
// Rules every transport keeps:
//
//   - It never retries Open: the container is the one place that reopens.
//   - Settling is accepted at once and sent in the broker's own way, batched
//     where that pays. What fails later, or was accepted but unsent when the
//     connection died, is reported to the [Observer], never swallowed.
//   - It owns its goroutines, and they are gone when Close returns. No liveness
//     (heartbeats, leases, noticing a loss) depends on calls of Receive.
//   - A delivery is bound to the connection, assignment or receipt it came from
//     and never settles anything on a later one.
package transport
