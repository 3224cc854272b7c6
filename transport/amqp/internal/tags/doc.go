// Package tags keeps the delivery tags of one AMQP channel, from a delivery's arrival to
// the broker's confirmation of its settlement. It decides which acks travel together and
// which travel alone. It is pure: no goroutine, no lock, no clock and no I/O; its owner
// guards it.
//
//	ring := tags.New()
//	ring.Arrive(tag, d)
//	ring.Accept(tag, longshore.SettleAck, tags.Ack)
//	ring.Collect(&batch, true, false)      // one ack for everything below tag
//
// In reading order: ring.go has the states of a tag and the [Ring] with what a consumer
// does to it, batch.go has what goes to the broker in one pass.
package tags
