package sqs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
)

// receipt makes a held message as a receive would.
func receipt(token uint64, id, group string, now time.Time, length time.Duration) *held {
	h := &held{token: token, id: id, group: group, receipt: fmt.Sprintf("r%d", token), receives: 1}
	h.since, h.deadline = now, now.Add(length)
	h.d = longshore.NewDelivery(context.Background(), lookedAt{}, token)
	h.d.Body = []byte("body")
	return h
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A lease is extended when a little more than half of it is left, in batches of ten, and
// one that was extended in time never ends.
func TestVisibilityExtendsAtHalf(t *testing.T) {
	now := epoch
	v := newVisibility(30 * time.Second)
	for i := range uint64(25) {
		h := receipt(i+1, fmt.Sprint(i), "", now, 30*time.Second)
		v.add(h)
		v.keep(h, now)
	}
	if batches, ended := v.due(now.Add(11 * time.Second)); len(batches)+len(ended) != 0 {
		t.Fatalf("%d batches, %d ended after 11 of 30 seconds", len(batches), len(ended))
	}
	for range 100 { // 20 minutes
		now = v.next(now)
		batches, ended := v.due(now)
		if len(ended) != 0 {
			t.Fatalf("%d leases ended at %s", len(ended), now.Sub(epoch))
		}
		for _, batch := range batches {
			if len(batch) > maxBatch {
				t.Fatalf("a batch of %d", len(batch))
			}
			for _, e := range v.extensions(batch, now) {
				if !e.send || e.length != 30*time.Second {
					t.Fatalf("extension %+v", e)
				}
				if _, lost := v.extended(&e, now, now, nil); lost {
					t.Fatal("lost")
				}
			}
			v.running--
		}
	}
}

// A settlement waits for an extension of the same receipt that is on its way; a copy for
// the dead-letter queue does not, since the lease is kept until it is confirmed.
func TestASettlementWaitsForTheExtensionOnItsWay(t *testing.T) {
	v := newVisibility(30 * time.Second)
	h := receipt(1, "a", "", epoch, 30*time.Second)
	v.add(h)
	v.keep(h, epoch)
	back := &op{kind: opReturn, h: h}
	if v.postpone(back) {
		t.Fatal("postponed with no extension on its way")
	}
	batches, _ := v.due(epoch.Add(20 * time.Second))
	e := v.extensions(batches[0], epoch)
	if v.postpone(&op{kind: opDead, h: h}) {
		t.Error("a dead letter was postponed")
	}
	if !v.postpone(back) {
		t.Fatal("not postponed")
	}
	h.settled = back
	if after, lost := v.extended(&e[0], epoch, epoch, errGone); after != back || lost {
		t.Errorf("after the extension: %v, lost %v", after, lost)
	}
	if h.extending || h.after != nil {
		t.Error("the message is still being extended")
	}
}

// Twelve hours are the end: the last extension is as long as SQS allows, and no other
// follows.
func TestExtensionsStopAtTwelveHours(t *testing.T) {
	v := newVisibility(time.Hour)
	h := receipt(1, "a", "", epoch, time.Hour)
	v.add(h)
	v.keep(h, epoch)
	now, calls := epoch, 0
	for {
		now = v.next(now)
		batches, ended := v.due(now)
		if len(ended) == 1 {
			break
		}
		for _, batch := range batches {
			calls++
			for _, e := range v.extensions(batch, now) {
				if now.Add(e.length).After(epoch.Add(maxLease)) {
					t.Fatalf("extended to %s after the receive", now.Add(e.length).Sub(epoch))
				}
				v.extended(&e, now, now, nil)
				if e.length == 0 {
					v.exhaust(h)
				}
			}
			v.running--
		}
		if calls > 100 {
			t.Fatal("extended without end")
		}
	}
	if held := now.Sub(epoch); held < maxLease-5*time.Second || held > maxLease {
		t.Errorf("held for %s", held)
	}
}

// Receives, extensions, failures, copies and settlements in random order: the tables
// agree with each other after each step, and no message is forgotten or held twice.
func TestVisibilityAgainstItsInvariants(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		v := newVisibility(30 * time.Second)
		now, token := epoch, uint64(0)
		var open []*held
		for step := range 200 {
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			switch op := r.IntN(6); {
			case op < 2: // a receive, now and then of a message that is held
				token++
				h := receipt(token, fmt.Sprint(r.IntN(20)), "", now, 30*time.Second)
				h.receives = 1 + r.IntN(5)
				if !v.adopt(h, now) {
					if old := v.byID[h.id]; old != nil {
						v.forget(old)
					}
					v.add(h)
					v.keep(h, now)
				}
			case op == 2 && len(open) > 0: // settled
				h := open[r.IntN(len(open))]
				for _, x := range v.takeCopies(h) {
					v.forget(x)
				}
				v.forget(h)
			default:
				batches, ended := v.due(now)
				for _, h := range ended {
					if h.of == nil && v.survives(h, now) {
						continue
					}
					v.forget(h)
				}
				for _, batch := range batches {
					entries := v.extensions(batch, now)
					for i := range entries {
						var err error
						if r.IntN(4) == 0 {
							err = errGone
						}
						if _, lost := v.extended(&entries[i], now, now, err); lost && !v.survives(entries[i].h, now) {
							v.forget(entries[i].h)
						}
					}
					v.running--
				}
			}
			open = checkVisibility(t, &v, seed, step)
		}
	}
}

// checkVisibility returns what is held, without copies.
func checkVisibility(t *testing.T, v *visibility, seed uint64, step int) (open []*held) {
	t.Helper()
	copies := 0
	for token, h := range v.byToken {
		if h.token != token {
			t.Fatalf("seed %d step %d: token %d is under %d", seed, step, h.token, token)
		}
		if h.of != nil {
			copies++
			continue
		}
		open = append(open, h)
		if v.byID[h.id] != h {
			t.Fatalf("seed %d step %d: message %s is held twice, or not by its id", seed, step, h.id)
		}
		if len(h.others) > maxCopies {
			t.Fatalf("seed %d step %d: %d copies", seed, step, len(h.others))
		}
		copies -= len(h.others)
	}
	if copies != 0 || len(open) != len(v.byID) {
		t.Fatalf("seed %d step %d: %d messages, %d ids, %d copies without a message", seed, step, len(open), len(v.byID), copies)
	}
	for i, h := range v.queue {
		if h.index != i+1 || !v.holds(h) {
			t.Fatalf("seed %d step %d: heap place %d is %d, held %v", seed, step, i+1, h.index, v.holds(h))
		}
	}
	if v.running != 0 {
		t.Fatalf("seed %d step %d: %d extensions run", seed, step, v.running)
	}
	return open
}

// Messages of a group come out one after the other and in their order, whatever else
// happens; messages of other groups do not wait for them.
func TestFifoKeepsEachGroupsOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		q := fifo{groups: map[string]*group{}}
		out := map[string]*held{}   // handed out and not settled, by group
		last := map[string]uint64{} // token, by group
		byToken := map[uint64]*held{}
		token, in, gone := uint64(0), 0, 0
		for range 300 {
			switch what := r.IntN(5); {
			case what < 2:
				token++
				h := receipt(token, fmt.Sprint(token), fmt.Sprint(r.IntN(4)), epoch, time.Minute)
				byToken[token] = h
				q.push(h)
				in++
			case what == 2:
				q.take(1 + r.IntN(3))
				for _, h := range byToken {
					if h.handed && h.settled == nil && out[h.group] != h {
						if out[h.group] != nil {
							t.Fatalf("seed %d: two of group %s are out", seed, h.group)
						}
						if h.token <= last[h.group] {
							t.Fatalf("seed %d: %d of group %s after %d", seed, h.token, h.group, last[h.group])
						}
						out[h.group], last[h.group] = h, h.token
					}
				}
			case what == 3:
				if h := anyOf(out); h != nil {
					h.settled = &op{}
					q.settled(h)
					delete(out, h.group)
					gone++
				}
			case what == 4: // a head is returned, and what follows it too
				if h := anyOf(out); h != nil {
					h.settled = &op{}
					for _, f := range q.takeBehind(h) {
						f.settled = &op{}
						gone++
					}
					delete(out, h.group)
					gone++
				}
			}
			if q.len()+len(out)+gone != in {
				t.Fatalf("seed %d: %d wait, %d are out, %d gone, of %d", seed, q.len(), len(out), gone, in)
			}
			if q.bytes != 4*q.behind {
				t.Fatalf("seed %d: %d bytes of %d messages", seed, q.bytes, q.behind)
			}
		}
	}
}

func anyOf(out map[string]*held) *held {
	for _, h := range out {
		return h
	}
	return nil
}

// A batch goes when it is full, when its oldest settlement has waited long enough, or when
// a caller waits; failures come back, each alone after a batch was refused as a whole.
func TestBatcherDecidesWhenABatchGoes(t *testing.T) {
	b := batcher{linger: 50 * time.Millisecond}
	h := receipt(1, "a", "", epoch, time.Hour)
	put := func(n int) {
		for range n {
			o := &op{kind: opDelete, h: h}
			b.accept(o, epoch)
			b.put(o)
		}
	}
	put(3)
	if batch, next := b.take(opDelete, epoch); batch != nil || !next.Equal(epoch.Add(50*time.Millisecond)) {
		t.Fatalf("%d go at once, next look %s", len(batch), next.Sub(epoch))
	}
	if batch, _ := b.take(opReturn, epoch.Add(time.Hour)); batch != nil {
		t.Fatal("a return was made up")
	}
	put(9)
	batch, _ := b.take(opDelete, epoch)
	if len(batch) != maxBatch {
		t.Fatalf("a full batch of %d", len(batch))
	}
	var r result // mentions nothing: all are sent again, later
	if done := b.called(opDelete, batch, &r, epoch, false); len(done) != 0 {
		t.Fatalf("%d have an outcome without an answer", len(done))
	}
	b.impatient++
	batch, _ = b.take(opDelete, epoch)
	if len(batch) != 2 { // the ten wait for their next try
		t.Fatalf("%d go while a caller waits", len(batch))
	}
	for i := range batch {
		id := entryID(i)
		r.put(&id, false, nil)
	}
	done := b.called(opDelete, batch, &r, epoch, false)
	for _, d := range done {
		b.ended(d.o)
	}
	if len(done) != 2 || b.accepted != 10 || b.queues[opDelete].running != 0 {
		t.Fatalf("%d done, %d accepted, %d run", len(done), b.accepted, b.queues[opDelete].running)
	}
	batch, _ = b.take(opDelete, epoch.Add(time.Second))
	refused := newResult(&longshore.Error{Code: longshore.CodeRefused})
	if b.called(opDelete, batch, &refused, epoch, false); len(batch) != 10 {
		t.Fatalf("%d were tried again", len(batch))
	}
	for range 10 {
		if batch, _ = b.take(opDelete, epoch.Add(time.Second)); len(batch) != 1 {
			t.Fatalf("%d go together after they were refused in company", len(batch))
		}
	}
}

// Calls of a kind are bounded, and more run while a caller waits.
func TestBatcherBoundsCalls(t *testing.T) {
	b := batcher{}
	h := receipt(1, "a", "", epoch, time.Hour)
	for range 1000 {
		o := &op{kind: opDead, h: h}
		b.accept(o, epoch)
		b.put(o)
	}
	calls := func() (n int) {
		for {
			if batch, _ := b.take(opDead, epoch); batch == nil {
				return n
			}
			n++
		}
	}
	if n := calls(); n != opDead.calls() {
		t.Errorf("%d calls at once", n)
	}
	b.impatient++
	if n := calls(); n != opDead.calls()*(urgency-1) {
		t.Errorf("%d more calls while a caller waits", n)
	}
}

// A settlement is given up after maxTries, or after a minute while no caller waits and its
// message is ours.
func TestBatcherGivesUp(t *testing.T) {
	for name, tc := range map[string]struct {
		tries     int
		impatient int
		lease     time.Duration
		age       time.Duration
		want      bool
	}{
		"few tries":                         {tries: 2, impatient: 1, want: true},
		"many, nobody waits":                {tries: maxTries, lease: time.Hour, age: time.Second, want: true},
		"many, a caller waits":              {tries: maxTries, impatient: 1, lease: time.Hour, want: false},
		"many, its lease has ended":         {tries: maxTries, lease: 0, want: false},
		"many, and it has lasted a minute":  {tries: maxTries, lease: time.Hour, age: lasting, want: false},
		"few tries, and lasted a minute":    {tries: 1, lease: time.Hour, age: lasting, want: true},
		"the last try that always is given": {tries: maxTries - 2, impatient: 1, want: true},
		"one more":                          {tries: maxTries - 1, impatient: 1, want: false},
	} {
		b := batcher{impatient: tc.impatient}
		o := &op{h: receipt(1, "a", "", epoch, tc.lease), tries: tc.tries, since: epoch.Add(-tc.age)}
		if got := b.again(o, epoch); got != tc.want {
			t.Errorf("%s: sent again %v", name, got)
		}
	}
}

// One poll while the queue is quiet, twice as many after each full answer, one again after
// an empty one.
func TestPollsFollowTheLoad(t *testing.T) {
	p := newPoller(t.Context(), 4, false)
	p.grant(100)
	openAll := func() (all []*poll) {
		for {
			o := p.next(0, time.Minute)
			if o == nil {
				return all
			}
			all = append(all, o)
		}
	}
	var polls []*poll
	for i, want := range []int{1, 2, 4, 4} {
		polls = append(polls[:0], openAll()...)
		if len(polls) != want {
			t.Fatalf("round %d: %d polls, want %d", i, len(polls), want)
		}
		for _, o := range polls {
			if (i > 0) != (o.lease == time.Minute) {
				t.Errorf("round %d: a lease of %s", i, o.lease)
			}
			p.answered(o, maxBatch, true, epoch)
		}
	}
	p.waiting = false // under load it goes ahead of Receive
	ahead := openAll()
	if len(ahead) != 4 {
		t.Errorf("%d polls ahead of Receive", len(ahead))
	}
	for _, o := range ahead {
		p.answered(o, 0, false, epoch)
	}
	if got := openAll(); len(got) != 0 {
		t.Errorf("%d polls ahead of Receive on an empty queue", len(got))
	}
	p.waiting = true
	if got := openAll(); len(got) != 1 || got[0].lease != quietLease {
		t.Errorf("%d polls of a quiet queue", len(got))
	}
	if p.open != 1 || p.asked != maxBatch {
		t.Errorf("%d open for %d messages", p.open, p.asked)
	}
}

// When nothing may be opened, nothing is.
func TestPollsThatAreNotOpened(t *testing.T) {
	for name, change := range map[string]func(*poller){
		"paused":                      func(p *poller) { p.paused = true },
		"cancelled":                   func(p *poller) { p.canceled = true },
		"no Receive":                  func(p *poller) { p.waiting = false },
		"no room":                     func(p *poller) { p.granted = 0 },
		"all that the load calls for": func(p *poller) { p.open = 1 },
	} {
		p := newPoller(t.Context(), 4, false)
		p.grant(10)
		if change(&p); p.next(0, time.Minute) != nil {
			t.Errorf("%s: a poll was opened", name)
		}
	}
	p := newPoller(t.Context(), 4, false)
	p.grant(10)
	if p.next(1, time.Minute) != nil {
		t.Error("a poll was opened although Receive is about to take what is ready")
	}
}

// Failures wait longer and longer, end the consumer after ten seconds, and shorten polls
// that something on the way cuts off.
func TestPollFailures(t *testing.T) {
	fresh := func() (poller, *poll) {
		p := newPoller(t.Context(), 4, false)
		p.grant(10)
		return p, p.next(0, time.Minute)
	}
	p, o := fresh()
	now, last := epoch, time.Duration(0)
	for i := range 20 {
		f := p.failed(o, longshore.CodeUnreachable, true, 0, now)
		if f.delay < last || f.delay > 5*time.Second || f.report != (i == 0) && now.Sub(epoch) < time.Minute {
			t.Fatalf("failure %d: %+v", i, f)
		}
		if want := now.Sub(epoch) >= enduring; f.exhausted != want || !f.passing {
			t.Fatalf("after %s: %+v", now.Sub(epoch), f)
		}
		now, last = now.Add(f.delay), f.delay
	}
	p, o = fresh()
	if f := p.failed(o, longshore.CodeAuth, false, 0, epoch); !f.passing {
		t.Error("refused credentials are not tried once more")
	}
	if f := p.failed(o, longshore.CodeAuth, false, 0, epoch); f.passing {
		t.Error("refused credentials are tried again and again")
	}
	p, o = fresh()
	p.failed(o, longshore.CodeBlocked, true, 0, epoch)
	if f := p.failed(o, longshore.CodeBlocked, true, 0, epoch.Add(time.Hour)); f.exhausted {
		t.Error("a broker that asks for fewer calls is taken for away")
	}
	p, o = fresh()
	p.failed(o, longshore.CodeUnreachable, true, 9*time.Second, epoch)
	p.failed(o, longshore.CodeUnreachable, true, 9*time.Second, epoch.Add(9*time.Second))
	p.ended(o)
	if o = p.next(0, time.Minute); o.patience != 4*time.Second {
		t.Errorf("polls that are cut off after 9s wait %s", o.patience)
	}
	p.answered(o, 0, false, epoch.Add(2*time.Hour))
	if o = p.next(0, time.Minute); o.patience != maxWait {
		t.Errorf("two hours later they wait %s", o.patience)
	}
}

// A poll that no one wants ends after its grace, and what it brought goes back a moment
// later.
func TestUnwantedPollsAreCutOff(t *testing.T) {
	p := newPoller(t.Context(), 4, false)
	p.grant(10)
	o := p.next(0, time.Minute)
	p.waiting = false
	p.callOff(epoch)
	if at, drop := p.leftover(epoch, cancelGrace, 0); drop || !at.Equal(epoch.Add(cancelGrace)) || o.ctx.Err() != nil {
		t.Fatalf("next look %s, drop %v", at.Sub(epoch), drop)
	}
	p.leftover(epoch.Add(cancelGrace), cancelGrace, 0)
	if o.ctx.Err() == nil {
		t.Error("the poll was not cut off")
	}
	p.ended(o)
	if at, drop := p.leftover(epoch.Add(cancelGrace), cancelGrace, 3); drop || !at.Equal(epoch.Add(unwanted)) {
		t.Errorf("what it brought: next look %s, drop %v", at.Sub(epoch), drop)
	}
	if _, drop := p.leftover(epoch.Add(unwanted), cancelGrace, 3); !drop {
		t.Error("what it brought is kept")
	}
	p.grant(10)
	if _, drop := p.leftover(epoch.Add(time.Hour), cancelGrace, 3); drop {
		t.Error("what a waiting Receive wants goes back")
	}

	o = p.next(0, time.Minute)
	if !p.unwant(epoch, cancelGrace) || p.unwant(epoch, cancelGrace) || p.quit() {
		t.Fatal("an open poll has ended, or its time begins again")
	}
	if at := p.cutLate(epoch); !at.Equal(epoch.Add(cancelGrace)) || o.ctx.Err() != nil {
		t.Errorf("cut off at %s", at.Sub(epoch))
	}
	if p.cutLate(epoch.Add(cancelGrace)); o.ctx.Err() == nil {
		t.Error("not cut off")
	}
	if p.ended(o); !p.quit() {
		t.Error("no poll is open and they have not ended")
	}
}

// What arrives is handed out, or goes back: while Cancel waits it depends on whether the
// queue counts the return.
func TestArrivalsAreTakenInOrGoBack(t *testing.T) {
	for _, tc := range []struct{ paused, canceled, ending, counts, want bool }{
		{want: true},
		{counts: true, want: true},
		{paused: true},
		{paused: true, counts: true},
		{canceled: true},
		{canceled: true, counts: true},
		{canceled: true, ending: true},
		{canceled: true, ending: true, counts: true, want: true},
		{paused: true, canceled: true, ending: true, counts: true},
	} {
		p := poller{paused: tc.paused, canceled: tc.canceled, ending: tc.ending}
		if got := p.takesIn(tc.counts); got != tc.want {
			t.Errorf("%+v: taken in %v", tc, got)
		}
	}
}
