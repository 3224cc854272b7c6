package wire

import "encoding/binary"

// RabbitMQ sends deliveries after cancel-ok: the ones that were on their way from the
// queue to the channel when the broker carried out the cancel. The client has forgotten
// the consumer by then and drops them, so they stay unsettled until the channel closes.
// A classic queue puts them back in their place; a quorum queue puts them at its end,
// behind messages of the same key, and counts the return.
//
// Therefore, when cancel-ok passes, the connection sends channel.flow(active) on the same
// channel, a method without effect. Its answer comes after those deliveries, and the
// client gets the cancel-ok in its place. Consuming channels never publish, so a method
// may stand between any two of their frames.
//
// Affected: RabbitMQ 3.10 to 4.3 with quorum queues (seen on 3.10, 4.0 and 4.3), and
// amqp091-go up to 1.16, whose consumer map has no entry for a cancelled tag.
// Reference: https://github.com/php-amqplib/php-amqplib/issues/295 and
// https://github.com/ruby-amqp/amqp/issues/198 describe the same race.

const (
	cancelOk     = 60<<16 | 31
	flowOk       = 20<<16 | 21
	channelClose = 20<<16 | 40
	closeOk      = 20<<16 | 41
)

// cancelFence holds cancel-ok frames back until the answer to channel.flow has passed.
type cancelFence struct {
	// held are the cancel-ok frames by channel: several consumers of one channel may be
	// cancelled before the first answer.
	held map[uint16][]byte
}

// fenceStep is what a method frame from the broker means for the fence.
type fenceStep uint8

const (
	fencePass    fenceStep = iota // not the fence's concern
	fenceHold                     // a cancel-ok: hold it and send channel.flow
	fenceRelease                  // the answer to channel.flow: give the held frames instead
)

// step decides about the method frame of a channel that comes next.
func (f *cancelFence) step(channel uint16, method uint32) fenceStep {
	switch method {
	case cancelOk:
		return fenceHold
	case flowOk:
		if len(f.held[channel]) > 0 {
			return fenceRelease
		}
	case channelClose, closeOk:
		delete(f.held, channel)
	}
	return fencePass
}

// hold keeps a cancel-ok.
func (f *cancelFence) hold(channel uint16, frame []byte) {
	f.held[channel] = append(f.held[channel], frame...)
}

// release returns the frames held for a channel, in the order in which they came.
func (f *cancelFence) release(channel uint16) []byte {
	frames := f.held[channel]
	delete(f.held, channel)
	return frames
}

// flowFrame is channel.flow(active=true).
func flowFrame(channel uint16) []byte {
	f := []byte{frameMethod, 0, 0, 0, 0, 0, 5, 0, 20, 0, 20, 1, 0xCE}
	binary.BigEndian.PutUint16(f[1:], channel)
	return f
}
