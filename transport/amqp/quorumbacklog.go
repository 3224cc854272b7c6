package amqp

import "time"

// A channel passes on to a quorum queue at most 32 settlements that the queue has
// not carried out yet. The others it keeps, joins and sends when the queue has come
// that far, or drops if it is closed before.
const (
	burstLimit = 24
	burstRest  = 100 * time.Millisecond // for one round of the queue's log, slow disks included
)

func (c *consumer) noteBurst(methods int) {
	now := time.Now()
	if now.Sub(c.burstAt) > 5*burstRest {
		c.burst = 0
	}
	c.burst, c.burstAt = c.burst+methods, now
}

// rest gives a quorum queue the time to take what the channel keeps for it: before
// a channel is closed, or a flush tells that all is done.
func (c *consumer) rest() error {
	if c.burst < burstLimit || c.cfg.Declare.Type == Classic || c.cfg.AutoAck {
		return nil
	}
	c.burst, c.heavy = 0, true
	select {
	case <-time.After(burstRest):
	case <-c.gone:
	}
	return c.ch.Qos(c.qos, 0, false)
}

// A quorum queue shows a cancelled consumer for as long as messages of it are not
// settled: that tells when it has carried out all that a channel keeps. With others
// that have come since, it tells nothing, and the last question is the end.
const (
	partedAsks  = 50
	partedPause = 20 * time.Millisecond
)

// awaitQueue waits until a slow queue has carried out what the channel keeps for it: at
// the channel's end it would be dropped, and what was acked come again.
func (c *consumer) awaitQueue() error {
	c.mu.Lock()
	held := c.stays && c.tags.Outstanding() > 0
	c.mu.Unlock()
	if !c.heavy || held || c.others < 0 {
		return nil
	}
	silent := 0
	for range partedAsks {
		switch st, known, err := stat(c.ch, c.queues[0], c.qos); {
		case err != nil || known && st.Consumers <= c.others:
			return err
		case !known:
			silent++
		}
		if silent == 2*askTimes {
			return nil
		}
		select {
		case <-time.After(partedPause):
		case <-c.gone:
		}
	}
	return nil
}
