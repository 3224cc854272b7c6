package container

// acquire asks the gate for the item. If there is no permit nobody asks again
// before the gate says so. The caller holds mu.
func (r *dispatcher) acquire(it *item) bool {
	if it.permit {
		return true
	}
	now := r.s.clock.Now()
	ok, again := r.s.gate.TryAcquire(now)
	if ok {
		it.permit = true
		return true
	}
	r.gateShut = true
	r.changed() // a drain does not wait for a permit
	if r.gateAgain != nil {
		r.gateAgain.Stop()
		r.gateAgain = nil
	}
	if !again.IsZero() {
		r.gateAgain = r.s.clock.AfterFunc(max(again.Sub(now), 0), r.gateOpen)
	}
	return false
}

// gateOpen lets workers ask the gate again.
func (r *dispatcher) gateOpen() {
	r.mu.Lock()
	r.gateShut = false
	r.armBatch()
	r.followGate()
	r.wakeOne()
	r.mu.Unlock()
}

// watchGate follows the gate's changes. The gate may call with its own lock held
// and is asked with ours held, so a goroutine stands between.
func (r *engine) watchGate() (stop func()) {
	if r.s.gate == nil {
		return func() {}
	}
	kick, quit, gone := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	unwatch := r.s.gate.Watch(func() {
		select {
		case kick <- struct{}{}:
		default:
		}
	})
	r.mu.Lock()
	r.followGate()
	r.mu.Unlock()
	go func() {
		defer close(gone)
		for {
			select {
			case <-kick:
				r.gateOpen()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		unwatch()
		close(quit)
		<-gone
	}
}
