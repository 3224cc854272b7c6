package sqs

import (
	"context"
	"sync"
	"time"
)

// crew runs functions on goroutines that it keeps for a while. The SDK's calls go
// deep: a new goroutine for each would grow its stack each time.
type crew struct {
	wg   sync.WaitGroup // the end of all of them
	work chan func()    // taken by a goroutine without work
}

// idleTime is how long a goroutine waits for work before it ends.
const idleTime = 5 * time.Second

// run runs f at once. Goroutines end with life, each after what it has begun.
func (c *crew) run(life context.Context, f func()) {
	select {
	case c.work <- f:
	default:
		c.wg.Go(func() { c.serve(life, f) })
	}
}

// serve runs f and then further work until none has come for idleTime, which outlasts the pauses
// between bursts of calls.
func (c *crew) serve(life context.Context, f func()) {
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	for {
		f()
		idle.Reset(idleTime)
		select {
		case f = <-c.work:
		case <-idle.C:
			return
		case <-life.Done():
			return
		}
	}
}
