package amqp

import "time"

// A channel passes on to a quorum queue at most 32 settlements that the queue has not
// carried out yet. The others it keeps, joins and sends when the queue has come that far,
// or drops if it is closed before.
const (
	burstLimit = 24
	burstPause = 100 * time.Millisecond // for one round of the queue's log, slow disks included
)

// quorumBacklog knows whether the channel may keep settlements for a quorum queue. The
// settle writer's goroutine owns it.
type quorumBacklog struct {
	off     bool      // the queue is classic, or nothing is acked
	burst   int       // settlements that were written in a short time
	burstAt time.Time // when the last of them was
	heavy   bool      // there were so many once that the channel may have kept some
}

// note counts settlements that are written now.
func (q *quorumBacklog) note(methods int, now time.Time) {
	if now.Sub(q.burstAt) > 5*burstPause {
		q.burst = 0
	}
	q.burst, q.burstAt = q.burst+methods, now
}

// pause is how long the queue needs before a channel is closed, or before a flush may say
// that everything is done; 0 if the channel has kept nothing since the last pause.
func (q *quorumBacklog) pause() time.Duration {
	if q.off || q.burst < burstLimit {
		return 0
	}
	q.burst, q.heavy = 0, true
	return burstPause
}

// A quorum queue shows a cancelled consumer for as long as messages of it are not settled:
// that says when it has carried out everything that a channel keeps. With consumers that
// have come since it reports nothing, and the last question is the end.
const (
	partedAsks  = 50
	partedPause = 20 * time.Millisecond
)

// awaitQueue waits until a slow queue has carried out what the channel keeps for it: at
// the channel's end that would be dropped, and acked messages would be redelivered.
// others are the consumers of the queue that are not ours.
func awaitQueue(ch *consumeChannel, queue string, others int, gone <-chan struct{}) error {
	silent := 0
	for range partedAsks {
		switch st, known, err := ch.stat(queue); {
		case err != nil || known && st.Consumers <= others:
			return err
		case !known:
			silent++
		}
		if silent == 2*askTimes {
			return nil
		}
		select {
		case <-time.After(partedPause):
		case <-gone:
		}
	}
	return nil
}
