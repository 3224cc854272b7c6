package amqp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
)

// perWorker is a consumer per worker behind one transport.Consumer. Each has its own channel,
// prefetch and buffer, and everything that a consumer is made of; this type opens and cancels
// them and hands out what they have received.
type perWorker struct {
	src     *Queue                // what it was opened from
	opts    transport.OpenOptions // with which each is opened
	stem    string                // of the consumer tags
	notices *notify.Notifier      // what the observer hears of all of them

	ready   chan struct{}  // woken when one of them has received something
	gone    chan struct{}  // closed when all of them are at their end
	closing chan struct{}  // closed when Close begins
	turn    chan struct{}  // holds a token; its holder may open and cancel
	wg      sync.WaitGroup // one goroutine for each consumer

	out []*longshore.Delivery // what the last Receive returned; reused

	mu    sync.Mutex     // guards what follows
	crew  crew           // those that are open
	stage perWorkerStage // how far the end has come
	err   error          // why all of them ended; nil: they have not
}

// perWorkerStage is how far the end has come. It only moves forward.
type perWorkerStage uint8

const (
	perWorkerOpen perWorkerStage = iota
	perWorkerCanceled
	perWorkerClosed
)

// crew is which consumers there are, and how many there are to be.
type crew struct {
	live    []*crewMember // that receive; the first one leads
	leaving []*crewMember // cancelled, with deliveries that are not settled
	wanted  int           // one for each worker
	most    int           // as the connection allows channels
	shut    bool          // nothing may be received, as Resize said last
	uneven  bool          // that call failed for some, so the next one goes to all of them again
	paused  bool          // nothing may be received for now
	made    int           // so many have been opened
	first   int           // whose buffer the next Receive looks into first
}

// follow notes whether the intake is shut and returns those that have to learn it.
func (c *crew) follow(shut bool) []*crewMember {
	if c.shut == shut && !c.uneven {
		return nil
	}
	c.shut, c.uneven = shut, false
	return c.live
}

// answered notes how the call that follow led to has ended.
func (c *crew) answered(err error) { c.uneven = c.uneven || err != nil }

// crewMember is one of the consumers.
type crewMember struct {
	*consumer
	tag   string        // its consumer tag
	ended chan error    // why the broker ended it
	leave chan struct{} // closed when it was cancelled
}

// openPerWorker opens as many consumers as there are workers, or none.
func (s *Queue) openPerWorker(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	p := &perWorker{src: s, opts: o, stem: s.cfg.Tag, notices: notify.New(o.Observer), ready: make(chan struct{}, 1),
		gone: make(chan struct{}), closing: make(chan struct{}), turn: make(chan struct{}, 1)}
	p.crew = crew{wanted: max(o.Workers, 1), most: channelMax, paused: o.Paused}
	if p.stem == "" {
		p.stem = "longshore-" + rand.Text()[:10]
	}
	p.turn <- struct{}{}
	if err := p.adjust(ctx); err != nil {
		_ = p.Close(ctx)
		return nil, err
	}
	s.opened.Store(true)
	return p, nil
}

// FollowWorkers opens or cancels consumers, one after the other, until there is one for each
// worker.
func (p *perWorker) FollowWorkers(ctx context.Context, workers int) error {
	p.locked(func() { p.crew.wanted = max(workers, 1) })
	return p.adjust(ctx)
}

func (p *perWorker) locked(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// adjust makes the number of consumers the wanted one.
func (p *perWorker) adjust(ctx context.Context) error {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		next, victim := p.next()
		switch {
		case next.add:
			if err := p.add(ctx); err != nil {
				return err
			}
		case victim != nil:
			if err := victim.Cancel(ctx); err != nil { // it may receive still, and is cancelled by the next adjustment
				p.putBack(victim)
				return err
			}
			p.report(victim, fmt.Sprintf("cancelled, %d unsettled", victim.held.arrivals(0).outstanding))
			close(victim.leave)
		default:
			return nil
		}
	}
}

// next decides what to change. One that is to be cancelled leaves the live ones at once.
func (p *perWorker) next() (next change, victim *crewMember) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.crew
	if p.stage != perWorkerOpen || p.err != nil || c.shut {
		return change{cancel: -1}, nil
	}
	if len(c.live) > 0 && c.live[0].lead != nil { // the one that led has ended, and another has to
		return change{add: true, cancel: -1}, nil
	}
	unsettled := make([]int, len(c.live))
	for i, m := range c.live {
		unsettled[i] = m.held.arrivals(0).outstanding
	}
	next = nextChange(min(c.wanted, c.most), unsettled)
	if next.cancel >= 0 {
		victim = c.live[next.cancel]
		c.live = slices.Delete(slices.Clone(c.live), next.cancel, next.cancel+1)
		c.leaving = append(slices.Clone(c.leaving), victim)
	}
	return next, victim
}

// putBack makes one that could not be cancelled live again: a pause and the end reach it.
func (p *perWorker) putBack(m *crewMember) {
	p.locked(func() {
		i := slices.Index(p.crew.leaving, m)
		if i < 0 { // it has ended meanwhile
			return
		}
		p.crew.leaving = slices.Delete(slices.Clone(p.crew.leaving), i, i+1)
		p.crew.live = append(slices.Clone(p.crew.live), m)
	})
}

// add opens one more consumer.
func (p *perWorker) add(ctx context.Context) error {
	m := &crewMember{tag: p.stem, ended: make(chan error, 1), leave: make(chan struct{})}
	o := p.opts
	o.Observer = crewObserver{p.notices, m.ended}
	var lead *consumer
	p.locked(func() {
		if len(p.crew.live) > 0 && p.crew.live[0].lead == nil {
			lead = p.crew.live[0].consumer
		}
		if p.crew.made++; p.crew.made > 1 {
			m.tag = fmt.Sprintf("%s.%d", p.stem, p.crew.made)
		}
		o.Paused = p.crew.paused
	})
	c, err := p.src.openChannel(ctx, p.src.config().ofOneWorker(m.tag, max(len(p.src.queues), 1), o.Batch), o, &placeInCrew{lead: lead, ready: p.ready, counted: p.counted})
	if err != nil {
		return err
	}
	m.consumer = c
	var stage perWorkerStage
	var paused, shut bool
	p.locked(func() {
		if lead == nil {
			p.crew.live = append([]*crewMember{m}, p.crew.live...)
			p.crew.most = max(1, int(c.sess.AMQP.Config.ChannelMax)-spareChannels)
		} else {
			p.crew.live = append(slices.Clone(p.crew.live), m)
		}
		stage, paused, shut = p.stage, p.crew.paused, p.crew.shut
	})
	signal(p.ready)                // it may have received something before
	p.wg.Go(func() { p.watch(m) }) //nolint:contextcheck // outlives the opening
	p.report(m, "added")
	return m.catchUp(ctx, stage, o.Paused, paused, shut)
}

// catchUp does what all of them were told while this one opened.
func (m *crewMember) catchUp(ctx context.Context, stage perWorkerStage, opened, paused, shut bool) error {
	var err error
	switch {
	case stage == perWorkerClosed:
		return m.Close(ctx)
	case stage == perWorkerCanceled:
		return m.Cancel(ctx)
	case paused && !opened:
		err = m.Pause(ctx)
	case opened && !paused:
		err = m.Resume(ctx)
	}
	if shut {
		err = errors.Join(err, m.Resize(ctx, 0))
	}
	return err
}

// report says in one line what became of a consumer, and how many there are now.
func (p *perWorker) report(m *crewMember, what string) {
	live, wanted := 0, 0
	p.locked(func() { live, wanted = len(p.crew.live), p.crew.wanted })
	p.notices.Event(transport.Event{Kind: transport.EventConsumer,
		Text: fmt.Sprintf("consumer %s of %s %s: %d consumers for %d workers", m.tag, p.src.title(), what, live, wanted)})
}

// placeInCrew is what a consumer that is one of several has in common with the others.
type placeInCrew struct {
	lead    *consumer     // declares, looks and reports for all; nil: this one does
	ready   chan struct{} // woken when one of them has received something
	counted func() int    // how many consumers each queue should count for all of them
}

// crewObserver passes on what one consumer reports, but for its end.
type crewObserver struct {
	*notify.Notifier
	ended chan error // has room for one: only the first cause counts
}

// Down keeps why the consumer ended for the one that watches it.
func (o crewObserver) Down(err error) {
	select {
	case o.ended <- err:
	default:
	}
}

// watch waits for the end of one consumer.
func (p *perWorker) watch(m *crewMember) {
	select {
	case err := <-m.ended:
		p.failed(m, err)
	case <-m.leave:
		p.seeOff(m)
	case <-p.closing:
	}
}

// closeTime bounds the closing of one consumer of several.
const closeTime = 5 * time.Second

// seeOff closes a cancelled consumer once everything that it had received is settled.
func (p *perWorker) seeOff(m *crewMember) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for m.held.arrivals(0).outstanding > 0 {
		select {
		case <-tick.C:
		case <-m.held.gone:
		case <-p.closing:
			return
		}
		if m.held.over() {
			break
		}
	}
	p.remove(m)
}

// remove closes a consumer whose deliveries are settled or lost.
func (p *perWorker) remove(m *crewMember) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		p.notices.Event(transport.Event{Kind: transport.EventNotice, Err: err, Text: "a consumer of " + p.src.title() + " could not be closed in time"})
	}
	other := func(x *crewMember) bool { return x == m }
	p.locked(func() {
		p.crew.live = slices.DeleteFunc(slices.Clone(p.crew.live), other)
		p.crew.leaving = slices.DeleteFunc(slices.Clone(p.crew.leaving), other)
	})
	signal(p.ready)
}

// failed replaces a consumer that the broker has ended alone, over a message that was not
// acknowledged in time. Any other end is that of all of them.
func (p *perWorker) failed(m *crewMember, err error) {
	if errors.Is(err, longshore.CodeAckTimeout) && !m.sess.Ended() {
		p.notices.Event(transport.Event{Kind: transport.EventNotice, Err: err,
			Text: fmt.Sprintf("consumer %s of %s is replaced; the others go on", m.tag, p.src.title())})
		p.remove(m)
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if p.adjust(ctx) == nil {
			return
		}
	}
	p.fail(err)
}

// fail ends all of them. Everything is lost before the container hears of the end.
func (p *perWorker) fail(err error) {
	var all []*crewMember
	open, first := false, false
	p.locked(func() {
		if first = p.err == nil; first {
			p.err, all, open = err, slices.Concat(p.crew.leaving, p.crew.live), p.stage == perWorkerOpen
		}
	})
	if !first {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = eachMember(all, func(m *crewMember) error { m.fail(err); return m.notices.Wait(ctx) })
	close(p.gone)
	if open {
		p.notices.Down(err)
	}
}

// eachMember calls all of them at once.
func eachMember(all []*crewMember, f func(*crewMember) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, m := range all {
		wg.Go(func() { errs[i] = f(m) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// members are those that live and those that leave, the leaving ones first.
func (p *perWorker) members() (live, all []*crewMember) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crew.live, slices.Concat(p.crew.leaving, p.crew.live)
}

// counted is how many consumers each queue should count for us.
func (p *perWorker) counted() (n int) {
	live, _ := p.members()
	for _, m := range live {
		n += m.window.counted()
	}
	return n
}

// Receive hands out what any of them has received: first what cancelled ones have left, then
// that of each in turn.
func (p *perWorker) Receive(ctx context.Context, n int) ([]*longshore.Delivery, error) {
	for {
		ds, err := p.take(max(n, 1))
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		select {
		case <-p.ready:
		case <-p.gone:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns up to n deliveries without waiting.
func (p *perWorker) take(n int) ([]*longshore.Delivery, error) {
	stage, line, end := p.line()
	switch {
	case stage == perWorkerClosed:
		return nil, longshore.ErrClosed
	case end != nil:
		return nil, end
	}
	clear(p.out)
	p.out = p.out[:0]
	over := longshore.ErrCanceled
	for _, m := range line {
		ds, err := m.held.take(n - len(p.out))
		if p.out = append(p.out, ds...); len(p.out) == n {
			return p.out, nil
		}
		switch {
		case err == nil:
			over = nil
		case !errors.Is(err, longshore.ErrCanceled) && over != nil:
			over = err
		}
	}
	if len(p.out) > 0 || stage == perWorkerOpen {
		return p.out, nil
	}
	return nil, over
}

// line is the order in which Receive looks into the buffers.
func (p *perWorker) line() (stage perWorkerStage, line []*crewMember, end error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line = slices.Clone(p.crew.leaving)
	if n := len(p.crew.live); n > 0 {
		p.crew.first = (p.crew.first + 1) % n
		line = append(append(line, p.crew.live[p.crew.first:]...), p.crew.live[:p.crew.first]...)
	}
	return p.stage, line, p.err
}

// Resize opens and shuts the intake; otherwise the prefetch of each is fixed.
func (p *perWorker) Resize(ctx context.Context, window int) error {
	var live []*crewMember
	shut := window <= 0
	p.locked(func() {
		live = p.crew.follow(shut)
	})
	if err := eachMember(live, func(m *crewMember) error { return m.Resize(ctx, window) }); err != nil {
		p.locked(func() { p.crew.answered(err) })
		return err
	}
	return p.adjust(ctx)
}

// Pause cancels all of them at the broker until Resume; what they have received stays ours.
func (p *perWorker) Pause(ctx context.Context) error {
	p.locked(func() { p.crew.paused = true })
	live, _ := p.members()
	return eachMember(live, func(m *crewMember) error { return m.Pause(ctx) })
}

// Resume lets them receive again.
func (p *perWorker) Resume(ctx context.Context) error {
	p.locked(func() { p.crew.paused = false })
	live, _ := p.members()
	return eachMember(live, func(m *crewMember) error { return m.Resume(ctx) })
}

// Cancel cancels all of them and opens no more.
func (p *perWorker) Cancel(ctx context.Context) error {
	p.locked(func() { p.stage = max(p.stage, perWorkerCanceled) })
	err := p.adjust(ctx) // one that opens now is finished
	live, _ := p.members()
	err = errors.Join(err, eachMember(live, func(m *crewMember) error { return m.Cancel(ctx) }))
	signal(p.ready)
	return err
}

// Release gives back what was not handed out.
func (p *perWorker) Release(ctx context.Context) error {
	return p.all(func(m *crewMember) error { return p.unlessGone(m.Release(ctx)) })
}

// Flush returns when everything that was accepted is confirmed.
func (p *perWorker) Flush(ctx context.Context) error {
	return p.all(func(m *crewMember) error { return p.unlessGone(m.Flush(ctx)) })
}

// unlessGone: a cancelled consumer whose last delivery is settled closes at any moment, and has
// nothing left that could be flushed or released.
func (p *perWorker) unlessGone(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage != perWorkerClosed && errors.Is(err, longshore.ErrClosed) {
		return nil
	}
	return err
}

func (p *perWorker) all(f func(*crewMember) error) error {
	_, all := p.members()
	return eachMember(all, f)
}

// Close ends all of them at once.
func (p *perWorker) Close(ctx context.Context) error {
	first := false
	p.locked(func() {
		if first = p.stage != perWorkerClosed; first {
			p.stage = perWorkerClosed
		}
	})
	if !first {
		return nil
	}
	err := p.adjust(ctx) // one that opens now is finished
	close(p.closing)
	err = errors.Join(err, p.all(func(m *crewMember) error { return m.Close(ctx) }))
	signal(p.ready)
	over := make(chan struct{})
	go func() { p.wg.Wait(); close(over) }() // each ends with its consumer
	select {
	case <-over:
	case <-ctx.Done():
	}
	return errors.Join(err, p.notices.Wait(ctx))
}

// Buffered is the number of deliveries that Receive has not handed out.
func (p *perWorker) Buffered() (n int) {
	_, all := p.members()
	for _, m := range all {
		n += m.Buffered()
	}
	return n
}

// Prefetch is the sum of what the broker was asked to send ahead.
func (p *perWorker) Prefetch() (n int) {
	live, _ := p.members()
	for _, m := range live {
		n += m.Prefetch()
	}
	return n
}

// ConsumerTag is what the tags of all of them begin with.
func (p *perWorker) ConsumerTag() string { return p.stem }

// Capabilities is what the queue can do; the workers say how much is held.
func (p *perWorker) Capabilities() transport.Capabilities {
	live, _ := p.members()
	if len(live) == 0 {
		return p.src.Capabilities()
	}
	caps := live[0].Capabilities()
	caps.MostHeld *= max(p.opts.MaxWorkers, len(live))
	return caps
}

// Backlog is how many messages are ready in the queues.
func (p *perWorker) Backlog(ctx context.Context) (int64, time.Time, error) {
	live, _ := p.members()
	if len(live) == 0 {
		return 0, time.Time{}, longshore.ErrClosed
	}
	return live[0].Backlog(ctx)
}
