package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/longshore-go/longshore/middleware/throttle"
)

// watcher is a container that is notified.
type watcher struct {
	changed func(held bool, reason string)
	held    bool // as it was last notified
}

// Watch holds a container while the breaker is open. stop returns when no call is
// under way any more.
func (b *Breaker) Watch(changed func(held bool, reason string)) (stop func()) {
	b.tellMu.Lock()
	defer b.tellMu.Unlock()
	if len(b.watchers) == 0 {
		b.life, b.end = context.WithCancel(context.Background())
	}
	id := b.watched
	b.watched++
	b.mu.Lock()
	held, reason := b.holds(), b.reason
	if b.state == Open && b.timer == nil {
		b.arm()
	}
	b.mu.Unlock()
	b.watchers[id] = &watcher{changed, held}
	if held {
		changed(true, reason)
	}
	return func() { b.unwatch(id) }
}

// unwatch ends what the last container leaves behind.
func (b *Breaker) unwatch(id int) {
	b.tellMu.Lock()
	delete(b.watchers, id)
	last := len(b.watchers) == 0
	if last {
		b.end()
	}
	b.tellMu.Unlock()
	if !last {
		return
	}
	b.probes.Wait()
	b.tellMu.Lock()
	defer b.tellMu.Unlock()
	if len(b.watchers) > 0 {
		return // one has come meanwhile, and the trial is for it
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// Doubts is true until it has closed again: a trial may take as long as the dependency
// lets it wait, and the containers consume meanwhile.
func (b *Breaker) Doubts() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state != Closed
}

// holds says whether the containers are not to consume. The caller holds mu.
func (b *Breaker) holds() bool { return b.state == Open || b.probing }

// publish notifies the containers of what has changed.
func (b *Breaker) publish() {
	b.tellMu.Lock()
	defer b.tellMu.Unlock()
	b.mu.Lock()
	held, reason := b.holds(), b.reason
	b.mu.Unlock()
	for _, w := range b.watchers {
		if w.held != held {
			w.held = held
			w.changed(held, reason)
		}
	}
}

// arm sets the timer of the trial. The caller holds mu.
func (b *Breaker) arm() {
	if b.timer != nil {
		b.timer.Stop()
	}
	b.timer = time.AfterFunc(max(time.Until(b.until), 0), b.retry)
}

// wakeUp begins the trial where no timer does: without a container.
func (b *Breaker) wakeUp() {
	b.mu.Lock()
	due := b.state == Open && b.timer == nil && !time.Now().Before(b.until)
	b.mu.Unlock()
	if due && b.cfg.Probe == nil {
		b.cb.State()
	}
}

// retry is the trial: Probe, or the next messages.
func (b *Breaker) retry() {
	if b.cfg.Probe == nil {
		b.cb.State() // open for longer than gobreaker's timeout: half-open now
		b.publish()
		return
	}
	b.tellMu.Lock()
	if b.watched > 0 && len(b.watchers) == 0 {
		b.mu.Lock()
		b.timer = nil // the next one sets it again
		b.mu.Unlock()
		b.tellMu.Unlock()
		return // the last container has stopped
	}
	b.probes.Add(1)
	life := b.life
	if life == nil {
		life = context.Background()
	}
	b.tellMu.Unlock()
	defer b.probes.Done()
	b.mu.Lock()
	b.probing = true
	b.mu.Unlock()
	b.probe(life)
	b.mu.Lock()
	b.probing = false
	b.mu.Unlock()
	b.publish()
}

// probe asks until Trials were right, or one was not.
func (b *Breaker) probe(life context.Context) {
	b.cb.State()
	for range b.cfg.Trials {
		done, err := b.cb.Allow()
		if err != nil {
			return
		}
		err = b.ask(life)
		if life.Err() != nil {
			err = errors.New("given up: no container runs")
		}
		done(err)
		if err != nil || b.cb.State() == gobreaker.StateClosed {
			return
		}
	}
}

func (b *Breaker) ask(life context.Context) (err error) {
	ctx, cancel := context.WithTimeout(life, b.cfg.ProbeTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the probe panicked: %v", p)
		}
	}()
	return b.cfg.Probe(ctx)
}

// rampSteps double what may run at once each time: 1, 2, 4 … 512, then all.
const rampSteps = 10

// startRamp lets handlers in little by little. The caller holds mu.
func (b *Breaker) startRamp() {
	b.stopRamp()
	if b.cfg.Ramp < 0 {
		return
	}
	b.ramp = throttle.NewPermits(1)
	b.climbTo(b.ramp, 1)
}

func (b *Breaker) climbTo(ramp *throttle.Limiter, step int) {
	b.step = time.AfterFunc(b.cfg.Ramp/rampSteps, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case b.ramp != ramp:
		case step == rampSteps:
			b.stopRamp()
		default:
			ramp.SetPermits(1 << step)
			b.climbTo(ramp, step+1)
		}
	})
}

// stopRamp opens the rest of a ramp; who waits for it looks again. The caller
// holds mu.
func (b *Breaker) stopRamp() {
	if b.ramp != nil {
		b.step.Stop()
		b.ramp.Unlimit()
		b.ramp = nil
	}
}
