package amqptest

import "time"

// write is the connection's writer: it empties the outbox, sends heartbeats
// when there is nothing else to send, and closes the socket at the end.
func (c *conn) write() {
	defer c.s.wg.Done()
	defer func() { _ = c.nc.Close() }()
	defer func() { _ = c.raw.SetDeadline(time.Now()) }() // a polite TLS close must not wait for the peer
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	idle := time.Now() // nothing written since
	for {
		if !c.mayWrite() {
			return
		}
		chunk, wait, last := c.out.take()
		if len(chunk) > 0 {
			if _, err := c.nc.Write(chunk); err != nil {
				return
			}
			idle = time.Now()
			c.relieved(len(chunk))
			c.out.recycle(chunk)
		}
		if last {
			return
		}
		if len(chunk) > 0 {
			continue
		}
		beat := time.Duration(c.beat.Load()) / 2
		if beat > 0 && time.Since(idle) >= beat {
			c.out.add(0, func(b []byte) []byte { return append(b, frameHeartbeat, 0, 0, 0, 0, 0, 0, frameEnd) })
			continue
		}
		timer.Reset(pause(wait, beat-time.Since(idle), beat > 0))
		select {
		case <-c.out.wake:
		case <-timer.C:
		}
	}
}

func pause(wait, beat time.Duration, beating bool) time.Duration {
	d := time.Hour
	if beating {
		d = max(beat, time.Millisecond)
	}
	if wait > 0 {
		d = min(d, wait)
	}
	return d
}

// mayWrite waits while the connection is stalled; false when it was cut then.
func (c *conn) mayWrite() bool {
	if !c.stalled.Load() {
		return true
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for c.stalled.Load() && c.state != connDead {
		c.s.resumed.Wait()
	}
	return c.state != connDead
}

// relieved lets deliveries flow again that stopped because too much was unsent.
func (c *conn) relieved(written int) {
	if written < congestion/2 {
		return
	}
	c.s.begin()
	defer c.s.end()
	if c.congested {
		c.congested = false
		for _, ch := range c.channels {
			ch.wakeQueues()
		}
	}
}
