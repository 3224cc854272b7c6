package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/container"
)

// run is one demo.
type run struct {
	cfg   Config
	legs  []*leg
	move  *migration // of legs[0]; nil: nothing is moved
	began time.Time

	mu   sync.Mutex // calls of Show, one at a time
	done bool
	page *page
}

// Run runs a demo. It ends after cfg.For, or earlier when soft ends: then the
// producers stop and the containers drain. When hard ends everything stops at
// once. The error says why it could not run; what was measured is in the result.
func Run(soft, hard context.Context, cfg Config) (Result, error) {
	r := &run{cfg: cfg.filled()}
	built, err := rigs(r.cfg)
	if err != nil {
		return Result{}, err
	}
	err = r.prepare(soft, built)
	var res Result
	if err == nil {
		r.page, err = r.open(soft)
	}
	if err == nil {
		res, err = r.play(soft, hard)
	}
	return res, errors.Join(err, r.close(hard, built))
}

// prepare subscribes everywhere at the same time.
func (r *run) prepare(ctx context.Context, built []*rig) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Answer)
	defer cancel()
	r.began = time.Now()
	if err := r.make(built); err != nil {
		return err
	}
	errs := make([]error, len(r.legs))
	var all sync.WaitGroup
	for i, l := range r.legs {
		all.Go(func() { errs[i] = l.start(ctx, r.cfg.Seed+uint64(i)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// make makes the legs. Where orders are moved, the second leg has no load of its own.
func (r *run) make(built []*rig) error {
	for _, x := range built {
		account := &ledger{}
		if r.cfg.Migrate && len(r.legs) > 0 {
			account = r.legs[0].ledger
		}
		l, err := newLeg(x, r.cfg, account, r.event)
		if err != nil {
			return err
		}
		r.legs = append(r.legs, l)
	}
	if r.cfg.Migrate {
		r.move = newMigration(r.legs[0], r.legs[1], r.cfg, r.event)
		r.legs = r.legs[:1]
	}
	return nil
}

// all are the legs, and the one that orders are moved to.
func (r *run) all() []*leg {
	if r.move == nil {
		return r.legs
	}
	return append(r.legs[:len(r.legs):len(r.legs)], r.move.to)
}

// play runs the steps and drains. The page is closed before the count: a job or a look of its
// own at dead letters would disturb it.
func (r *run) play(soft, hard context.Context) (Result, error) {
	r.began = time.Now()
	h := Header{Keys: keys, Seed: r.cfg.Seed, For: r.cfg.For, Page: r.page.link, Stay: r.cfg.Stay}
	for _, l := range r.all() {
		h.Brokers = append(h.Brokers, l.rig.label)
	}
	r.show(func(s Show) { s.Begin(h) })

	producing, stopProducers := context.WithCancel(soft)
	var producers, watch sync.WaitGroup
	for _, l := range r.legs {
		producers.Go(func() { l.producer.run(producing) })
	}
	watching, stopWatching := context.WithCancel(context.WithoutCancel(soft))
	watch.Go(func() { r.watch(watching) })

	err := error(nil)
	switch {
	case r.move != nil:
		err = r.migrate(producing)
	case r.cfg.Stay:
		r.stay(producing)
	default:
		r.steps(producing)
	}
	if soft.Err() == nil {
		r.finish(soft)
		r.lastOrders(producing)
	}
	stopProducers()
	producers.Wait()
	drain := r.drain(hard)
	err = errors.Join(err, r.page.close(hard))
	stopWatching()
	watch.Wait()
	res := r.result(hard, drain)
	r.show(func(s Show) { s.End(); r.done = true })
	return res, err
}

// sleep waits until a share of the time has passed; false when ctx ends first.
func (r *run) sleep(ctx context.Context, until time.Duration) bool {
	t := time.NewTimer(time.Until(r.began.Add(until)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// steps does what is to be seen, each at its share of the time.
func (r *run) steps(ctx context.Context) {
	for _, s := range []struct {
		at int
		do func(context.Context)
	}{
		{atBurst, quietly(r.burst)}, {atPoison, quietly(r.poison)}, {atThrottle, r.throttle}, {atCut, quietly(r.cut)}, {atThrottleOff, r.throttleOff}, {atEnd, r.endProducers},
	} {
		if !r.sleep(ctx, r.cfg.at(s.at)) {
			return
		}
		s.do(ctx)
	}
}

// migrate sends a burst and poison, moves the orders while more come, and ends the producers.
func (r *run) migrate(ctx context.Context) error {
	if !r.sleep(ctx, r.cfg.at(atBurst)) {
		return nil
	}
	r.poison(ctx)
	r.burst(ctx)
	if !r.sleep(ctx, r.cfg.at(atMove)) {
		return nil
	}
	if err := r.move.run(ctx); err != nil {
		return err
	}
	if r.sleep(ctx, r.cfg.at(atEnd)) {
		r.endProducers(ctx)
	}
	return nil
}

// quietly is a step of which nothing is to be returned.
func quietly(do func(context.Context) string) func(context.Context) {
	return func(ctx context.Context) { do(ctx) }
}

// each does something on all legs that have a producer at the same time.
func (r *run) each(do func(*leg)) { together(r.legs, do) }

func together(legs []*leg, do func(*leg)) {
	var all sync.WaitGroup
	for _, l := range legs {
		all.Go(func() { do(l) })
	}
	all.Wait()
}

func (r *run) burst(ctx context.Context) string {
	n := r.cfg.burst()
	text := fmt.Sprintf("%s orders at once, %s to each broker; %d ms of work per order", thousands(n*len(r.legs)), thousands(n), workTime.Milliseconds())
	r.event("burst", text)
	r.each(func(l *leg) { l.producer.extra(ctx, n, false) })
	return text
}

func (r *run) poison(ctx context.Context) string {
	text := count(poisonSize*len(r.legs), "order", "orders") + " that cannot be decoded"
	r.event("poison", text)
	r.each(func(l *leg) { l.producer.extra(ctx, poisonSize, true) })
	return text
}

func (r *run) throttle(context.Context) {
	running := 0
	for _, l := range r.legs {
		l.limit("demo", "a step of the demo")
		running += l.box.Stats().Busy
	}
	r.event("throttle", fmt.Sprintf("%d permits on each broker; %s not interrupted", permits, count(running, "running handler is", "running handlers are")))
}

func (r *run) cut(context.Context) string {
	var mu sync.Mutex
	conns, running := 0, 0
	r.each(func(l *leg) {
		c, n := l.cut()
		mu.Lock()
		conns, running = conns+c, running+n
		mu.Unlock()
	})
	text := count(conns, "connection is", "connections are") + " cut while " + count(running, "handler runs", "handlers run")
	r.event("fault", text)
	return text
}

func (r *run) throttleOff(context.Context) {
	for _, l := range r.legs {
		l.gate.ClearOverride()
	}
	r.event("throttle", "off; "+r.waiting())
}

func (r *run) endProducers(context.Context) {
	for _, l := range r.legs {
		l.producer.rest()
	}
	r.event("end", "the producers have stopped; "+r.waiting())
}

func (r *run) waiting() string {
	parts := make([]string, len(r.legs))
	for i, l := range r.legs {
		parts[i] = l.rig.name + " " + thousands(l.ledger.waiting())
	}
	return "waiting: " + strings.Join(parts, ", ")
}

// finish waits until everything is done, at least until the time is over and not
// much longer.
func (r *run) finish(ctx context.Context) {
	if !r.sleep(ctx, r.cfg.For) {
		return
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(settleTime)
	for {
		idle := true
		for _, l := range r.all() {
			idle = idle && l.idle()
		}
		if idle {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			return
		case <-ctx.Done():
			return
		}
	}
}

// lastOrders publishes a few more, as many as there are workers, so that the
// drain finds handlers that run.
func (r *run) lastOrders(ctx context.Context) {
	r.each(func(l *leg) {
		st := l.box.Stats()
		n := min(lastSize, st.Workers)
		if l.ledger.waiting() > 0 || n == 0 || ctx.Err() != nil {
			return
		}
		begun := l.ledger.progress() + n
		l.producer.extra(ctx, n, false)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range 500 { // what has not come by then stays in its queue
			if l.ledger.progress() >= begun {
				return
			}
			<-tick.C
		}
	})
}

// drain stops all containers at the same time.
func (r *run) drain(hard context.Context) Drain {
	r.event("drain", "the containers stop")
	together(r.all(), func(l *leg) { _ = l.box.Stop(hard) }) // the report says it all
	var d Drain
	for _, l := range r.all() {
		d.add(l.box.Report())
	}
	return d
}

func (r *run) result(hard context.Context, drain Drain) Result {
	res := Result{OK: true, Seed: r.cfg.Seed, Seconds: time.Since(r.began).Seconds(), Drain: drain, Stopped: hard.Err() != nil}
	for _, l := range r.all() {
		if l.unwatch != nil { // it was subscribed
			l.unwatch()
			l.events.Wait()
		}
	}
	if !res.Stopped {
		r.audit(hard)
	}
	if r.move != nil {
		res.Migration = r.move.result()
		res.OK = r.move.interrupted || res.Migration.OK()
	}
	for _, l := range r.legs {
		c, name := l.ledger.count(), l.rig.name
		if r.move != nil {
			name += " → " + r.move.to.rig.name
		}
		if res.Stopped {
			c = l.ledger.stopped(c)
		}
		res.Brokers = append(res.Brokers, Broker{Name: name, Count: c})
		res.OK = res.OK && !c.Bad()
	}
	res.OK = res.OK && !res.Stopped
	return res
}

// audit looks for what is still in the queues. Where orders were moved, both legs share a ledger,
// and the new side is looked at first.
func (r *run) audit(ctx context.Context) {
	if r.move == nil {
		r.each(func(l *leg) { l.audit(ctx) })
		return
	}
	r.move.to.audit(ctx)
	r.move.from.audit(ctx)
}

// close ends what was begun, queues included.
func (r *run) close(hard context.Context, built []*rig) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(hard), 2*time.Second)
	defer cancel()
	var mu sync.Mutex
	errs := []error{r.page.close(ctx)}
	together(r.all(), func(l *leg) {
		state := l.box.State()
		err := error(nil)
		if state != container.StateStopped && state != container.StateNew {
			err = l.box.Stop(ctx)
		}
		if l.unwatch != nil {
			err = errors.Join(err, l.close(ctx))
		}
		if l.outlet != nil || r.move != nil && r.move.from.outlet != nil { // only then anything was made
			err = errors.Join(err, l.rig.remove(ctx))
		}
		mu.Lock()
		errs = append(errs, err)
		mu.Unlock()
	})
	return errors.Join(errors.Join(errs...), stopRigs(built))
}

func (r *run) show(call func(Show)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		call(r.cfg.Show)
	}
}

func (r *run) event(kind, text string) {
	at := time.Since(r.began)
	r.show(func(s Show) { s.Event(Event{At: at, Kind: kind, Text: text}) })
}
