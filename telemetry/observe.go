package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
)

// Observe shows the gauges and totals of containers, read whenever the provider
// collects. A container that has stopped shows its state and its drains and
// nothing else, so its other series end. stop ends it. Two containers with the same name
// and source would be one series, of which the provider keeps one value: the second is
// refused with longshore.CodeConfig.
func (t *Telemetry) Observe(cs ...*container.ListenerContainer) (stop func() error, err error) {
	o := &observer{meter: t.meter}
	o.make()
	if o.problem != nil {
		return nil, o.problem
	}
	release, err := t.claim(cs)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	all := make([]*watched, 0, len(cs))
	for _, c := range cs {
		all = append(all, &watched{c: c})
	}
	reg, err := t.meter.RegisterCallback(func(_ context.Context, out metric.Observer) error {
		mu.Lock() // two readers may collect at once
		defer mu.Unlock()
		for _, w := range all {
			o.observe(out, w)
		}
		return nil
	}, o.all...)
	if err != nil {
		release()
		return nil, err
	}
	return func() error {
		release()
		return reg.Unregister()
	}, nil
}

// claim takes the series of containers, or says which are taken.
func (t *Telemetry) claim(cs []*container.ListenerContainer) (release func(), err error) {
	t.seriesMu.Lock()
	defer t.seriesMu.Unlock()
	var taken [][2]string
	for _, c := range cs {
		id := [2]string{c.Name(), c.Stats().Source}
		if t.series[id] {
			err = errors.Join(err, &longshore.Error{Code: longshore.CodeConfig, Op: fmt.Sprintf("observe container %q", c.Name()), Source: c.Name(),
				Err: fmt.Errorf("another container has this name and consumes %q as well, so their metrics could not be distinguished", id[1]), Hint: "set container.Config.Name"})
			continue
		}
		if t.series == nil {
			t.series = map[[2]string]bool{}
		}
		t.series[id] = true
		taken = append(taken, id)
	}
	release = sync.OnceFunc(func() {
		t.seriesMu.Lock()
		defer t.seriesMu.Unlock()
		for _, id := range taken {
			delete(t.series, id)
		}
	})
	if err != nil {
		for _, id := range taken {
			delete(t.series, id)
		}
		return nil, err
	}
	return release, nil
}

// observer has the instruments of whole containers.
type observer struct {
	meter   metric.Meter
	problem error
	all     []metric.Observable

	state, workers, target, most, permits, inflight, lanes, parked, stuck, backlog           metric.Int64ObservableGauge
	live, ready, accepting                                                                   metric.Int64ObservableGauge
	busy, capacity, rate, oldest, last, backlogAge                                           metric.Float64ObservableGauge
	redelivered, deadLetters, released, settleFailures, reopens, skipped, decisions, drained metric.Int64ObservableCounter
	drainTook                                                                                metric.Float64ObservableGauge
}

func (o *observer) make() {
	o.state = o.gauge("longshore.container.state", "{container}", "1 for the state that the container is in.")
	o.live = o.gauge("longshore.container.live", "{container}", "0 if it ended without being stopped.")
	o.ready = o.gauge("longshore.container.ready", "{container}", "1 while deliveries flow or could.")
	o.accepting = o.gauge("longshore.container.accepting", "{container}", "1 while work may start: not paused, behind a breaker that is not closed, throttled to 0, draining or without a subscription.")
	o.workers = o.gauge("longshore.container.workers", "{worker}", "Workers that exist.")
	o.target = o.gauge("longshore.container.workers.target", "{worker}", "Workers that are wanted.")
	o.most = o.gauge("longshore.container.workers.max", "{worker}", "Workers that there may be.")
	o.permits = o.gauge("longshore.container.permits", "{permit}", "Permits of the throttle, where there is one.")
	o.inflight = o.gauge("longshore.container.inflight", "{message}", "Deliveries held: running, ready, waiting in lanes.")
	o.parked = o.gauge("longshore.container.parked", "{message}", "Deliveries that wait for a retry, with their followers.")
	o.lanes = o.gauge("longshore.container.lanes", "{lane}", "Keys in work or waiting.")
	o.stuck = o.gauge("longshore.container.stuck", "{handler}", "Handlers that outlived their limit.")
	o.backlog = o.gauge("longshore.backlog", "{message}", "Messages that are not done yet, as the broker counts them.")
	o.busy = o.share("longshore.container.busy", "1", "Share of worker time that was busy, 0 to 1.")
	o.capacity = o.share("longshore.container.capacity", "1", "Share of time in which a message would have been started at once; 1 without traffic, 0 without a consumer and while all workers are busy.")
	o.rate = o.share("longshore.container.rate", "{message}/s", "Starts per second that the throttle lets through, where it has such a limit.")
	o.backlogAge = o.share("longshore.backlog.age", "s", "Time since the backlog was read.")
	o.oldest = o.share("longshore.delivery.oldest", "s", "Time that the oldest delivery in hand has been here.")
	o.last = o.share("longshore.delivery.last", "s", "Time since something was received.")
	o.redelivered = o.total("longshore.redelivered", "{message}", "Deliveries that the broker had handed out before.")
	o.deadLetters = o.total("longshore.deadletters", "{message}", "Messages moved to the dead-letter destination, by reason.")
	o.released = o.total("longshore.released", "{message}", "Messages given back uncounted by handlers and middlewares, by reason.")
	o.settleFailures = o.total("longshore.settle.failures", "{message}", "Settlements that were accepted and failed later.")
	o.reopens = o.total("longshore.reopens", "{reopen}", "Subscriptions that ended, by code.")
	o.decisions = o.total("longshore.scale.decisions", "{decision}", "Changes of the wanted workers, by direction and reason.")
	o.skipped = o.total("longshore.skipped", "1", "How often messages were skipped: expired, truncated, given_up.")
	o.drained = o.total("longshore.drain.deliveries", "{message}", "What became of deliveries in drains: completed, released, abandoned, unflushed, lost.")
	o.drainTook = o.share("longshore.drain.duration", "s", "Time that the last drain took.")
}

func (o *observer) gauge(name, unit, what string) metric.Int64ObservableGauge {
	g, err := o.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	o.add(g, err)
	return g
}

func (o *observer) share(name, unit, what string) metric.Float64ObservableGauge {
	g, err := o.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	o.add(g, err)
	return g
}

func (o *observer) total(name, unit, what string) metric.Int64ObservableCounter {
	c, err := o.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	o.add(c, err)
	return c
}

func (o *observer) add(i metric.Observable, err error) {
	o.problem = errors.Join(o.problem, err)
	o.all = append(o.all, i)
}

// reading is one container at one collection.
type reading struct {
	out    metric.Observer
	labels []attribute.KeyValue
	plain  metric.MeasurementOption
}

func read(out metric.Observer, s container.Stats) reading {
	labels := append(sourceAttributes(s.Transport, s.Source, ""), attrContainer.String(s.Name))
	return reading{out, labels, metric.WithAttributes(labels...)}
}

func (r reading) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(r.labels[:len(r.labels):len(r.labels)], more...)...)
}

func (r reading) count(g metric.Int64Observable, n int) { r.out.ObserveInt64(g, int64(n), r.plain) }

func (r reading) share(g metric.Float64Observable, v float64) { r.out.ObserveFloat64(g, v, r.plain) }

func (r reading) flag(g metric.Int64Observable, on bool) {
	n := int64(0)
	if on {
		n = 1
	}
	r.out.ObserveInt64(g, n, r.plain)
}

func (r reading) byCode(c metric.Int64Observable, key attribute.Key, usual []longshore.Code, m map[longshore.Code]int64) {
	for _, code := range usual {
		if _, ok := m[code]; !ok {
			r.out.ObserveInt64(c, 0, r.with(key.String(string(code))))
		}
	}
	for code, n := range m {
		r.out.ObserveInt64(c, n, r.with(key.String(string(code))))
	}
}

func (r reading) moves(c metric.Int64Observable, by map[string]container.Moves) {
	move := func(direction, reason string, n int64) {
		r.out.ObserveInt64(c, n, r.with(attrDirection.String(direction), attrReason.String(reason)))
	}
	for direction, reasons := range usualMoves() {
		for _, reason := range reasons {
			if _, seen := by[reason]; !seen {
				move(direction, reason, 0)
			}
		}
	}
	for reason, m := range by {
		move("up", reason, m.Ups)
		move("down", reason, m.Downs)
	}
}

func (o *observer) observe(out metric.Observer, w *watched) {
	s := w.c.Stats()
	r := read(out, s)
	out.ObserveInt64(o.state, 1, r.with(attribute.String("state", string(s.State))))
	o.drains(r, w)
	ended := s.State == container.StateNew || s.State == container.StateStopped
	if !ended || !s.Live { // one that ended by itself goes on saying so
		r.flag(o.live, s.Live)
	}
	if ended {
		return
	}
	r.flag(o.ready, s.Ready)
	r.flag(o.accepting, s.Accepting)
	o.load(r, s)
	o.totals(r, s)
}

// load shows what is held and by whom.
func (o *observer) load(r reading, s container.Stats) {
	r.count(o.workers, s.Workers)
	r.count(o.target, s.Target)
	r.count(o.most, s.Max)
	r.count(o.inflight, s.InFlight)
	r.count(o.parked, s.Parked)
	r.count(o.lanes, s.Lanes)
	r.count(o.stuck, s.Stuck)
	r.share(o.busy, s.Capacity)
	r.share(o.capacity, s.ConsumerCapacity)
	r.share(o.oldest, s.Oldest.Seconds())
	if s.Permits >= 0 {
		r.count(o.permits, s.Permits)
	}
	if s.Rate >= 0 {
		r.share(o.rate, s.Rate)
	}
	if !s.BacklogAt.IsZero() {
		r.out.ObserveInt64(o.backlog, s.Backlog, r.plain)
		r.share(o.backlogAge, max(time.Since(s.BacklogAt).Seconds(), 0))
	}
	if !s.LastDelivery.IsZero() {
		r.share(o.last, max(time.Since(s.LastDelivery).Seconds(), 0))
	}
}

// totals shows what has been done since the start.
func (o *observer) totals(r reading, s container.Stats) {
	r.out.ObserveInt64(o.redelivered, s.Redelivered, r.plain)
	r.byCode(o.deadLetters, "reason", usualReasons(), s.DeadLetters)
	r.byCode(o.released, "reason", usualReleases(), s.ReleasedBy)
	r.byCode(o.settleFailures, "code", usualSettleFailures(), s.SettleFailures)
	r.byCode(o.reopens, "code", usualReopens(), s.Reopens)
	for _, reason := range usualSkips() {
		r.out.ObserveInt64(o.skipped, s.Skipped[reason], r.with(attrReason.String(string(reason))))
	}
	r.moves(o.decisions, s.Scaling.Reasons)
}

// watched is a container and its drains as far as they were seen.
type watched struct {
	c    *container.ListenerContainer
	last *container.Report
	sum  map[string]int
}

// drains shows what became of deliveries in drains. They outlive the stop: who
// collects meets most of them there. They begin before the first one, with 0.
func (o *observer) drains(r reading, w *watched) {
	if w.sum == nil {
		w.sum = map[string]int{"completed": 0, "released": 0, "abandoned": 0, "unflushed": 0, "lost": 0}
	}
	if rep := w.c.Report(); rep != nil && rep != w.last {
		w.last = rep
		w.sum["completed"] += rep.Completed
		w.sum["released"] += rep.Released
		w.sum["abandoned"] += rep.Abandoned
		w.sum["unflushed"] += rep.Unflushed
		w.sum["lost"] += rep.Lost
	}
	for outcome, n := range w.sum {
		r.out.ObserveInt64(o.drained, int64(n), r.with(attrOutcome.String(outcome)))
	}
	if w.last != nil {
		r.share(o.drainTook, w.last.Took.Seconds())
	}
}
