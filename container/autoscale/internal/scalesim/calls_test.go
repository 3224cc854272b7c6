package scalesim

import "math"

// startAll hands ready messages to idle workers.
func (w *world) startAll() (any bool) {
	if w.paused != nil && w.paused(w.now) {
		return false
	}
	for w.ready.len() > 0 && len(w.idle) > 0 {
		if p := w.permit(); p >= 0 && int(w.busy) >= p {
			return any
		}
		w.start()
		any = true
	}
	return any
}

// start gives a unit to the hottest idle worker; in turn, as Spring's consumers
// are served, to the coldest.
func (w *world) start() {
	at := len(w.idle) - 1
	if w.spring {
		at = 0
	}
	id := w.idle[at]
	w.idle = append(w.idle[:at], w.idle[at+1:]...)
	wk := &w.workers[id]
	waited := w.now - wk.since
	w.cycle(wk, waited)

	c := call{began: w.now, n: 0, w: id, key: -1}
	for c.n < w.batchSize() && w.ready.len() > 0 {
		m := w.ready.pop()
		c.n++
		c.key = m.key
		if m.at >= w.warm {
			w.result.waited(w.now - m.at)
		}
	}
	sigma := w.spread
	if sigma == 0 {
		sigma = 0.3
	}
	c.work = w.work
	if sigma > 0 {
		c.work *= math.Exp(sigma * w.rng.NormFloat64())
	}
	if w.batch != nil { // a call costs a fixed part and a part for each message
		c.work *= 0.5 + 0.5*float64(c.n)
	}
	w.busy++
	at = w.newCall(c)
	w.outside = append(w.outside, at)
	w.enter()
}

func (w *world) newCall(c call) int {
	if n := len(w.spare); n > 0 {
		at := w.spare[n-1]
		w.spare = w.spare[:n-1]
		w.calls[at] = c
		return at
	}
	w.calls = append(w.calls, c)
	return len(w.calls) - 1
}

// enter lets waiting calls into the downstream.
func (w *world) enter() {
	if w.fleet != nil {
		w.enterTogether()
		return
	}
	for len(w.outside) > 0 && (w.slots == nil || len(w.inside) < w.slots(w.now)) {
		at := w.outside[0]
		w.outside = w.outside[1:]
		w.inside.push(vend{w.v + w.calls[at].work, at})
	}
}

// end is the end of the call that is due.
func (w *world) end() {
	at := w.inside.pop().at
	c := w.calls[at]
	w.spare = append(w.spare, at)
	w.busy--
	w.completed += c.n
	w.execs++
	w.result.done(c.n)
	wk := &w.workers[c.w]
	wk.failed = false
	if w.fails != nil && w.rng.Float64() < w.fails(w.now, len(w.inside)+1) {
		w.failed++
		wk.failed = true
	}
	ln := math.Log(w.now - c.began)
	w.log += ln
	w.log2 += ln * ln
	w.noteFull()
	if c.key >= 0 {
		w.next(c.key)
	}
	wk.since = w.now
	if w.live > w.target {
		w.retire(c.w)
	} else {
		w.idle = append(w.idle, c.w)
	}
	w.enter()
	w.pump()
}

// next lets a lane go on.
func (w *world) next(key int) {
	l := w.lanes[key]
	if l == nil || l.len() == 0 {
		delete(w.running, key)
		return
	}
	w.behind--
	w.ready.push(l.pop())
}

func (w *world) noteFull() {
	w.seen++
	if n := w.ready.len(); n > 0 && 2*n >= w.look() {
		w.hits++
	}
}

// cycle counts a unit for the policies by consecutive cycles.
func (w *world) cycle(wk *worker, waited float64) {
	if w.cycles == nil {
		return
	}
	switch {
	case wk.failed:
	case waited < 1e-9, w.spring && waited < w.cycles.Wait.Seconds():
		wk.active++
	default:
		wk.active = 0
	}
	if wk.active > w.cycles.Active+1 {
		w.activeTripped++
		wk.active = 0
	}
}

// idleTripped counts the workers that were idle for too long.
func (w *world) idleTripped() int {
	n := 0
	for _, id := range w.idle {
		wk := &w.workers[id]
		wait := w.cycles.Wait.Seconds()
		if int((w.now-wk.since)/wait) > w.cycles.Idle+1 {
			n++
			wk.since = w.now
		}
	}
	return n
}

func (w *world) setTarget(n int) {
	w.target = n
	for w.live < n {
		w.live++
		id := len(w.workers)
		if k := len(w.free); k > 0 {
			id = w.free[k-1]
			w.free = w.free[:k-1]
			w.workers[id] = worker{since: w.now}
		} else {
			w.workers = append(w.workers, worker{since: w.now})
		}
		w.idle = append([]int{id}, w.idle...) // cold
	}
	for w.live > n && len(w.idle) > 0 {
		id := w.idle[0]
		w.idle = w.idle[1:]
		w.retire(id)
	}
}

func (w *world) retire(id int) {
	w.live--
	w.free = append(w.free, id)
}
