package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport"
)

const soakKeys = 20

// soakLeg is one broker with its consumer in a process of its own, behind a proxy.
type soakLeg struct {
	t      *testing.T
	kind   string
	addr   string // not through the proxy
	name   string
	proxy  *faultproxy.Proxy
	child  *soakProcess
	guest  *soakProcess // a second consumer, which comes and goes; nil: the child itself does
	turns  sync.Mutex   // of who starts, stops or signals child
	note   *oracle.Ledger
	more   map[string]func(span time.Duration) // faults of the broker
	idle   func() (bool, error)
	sent   int
	again  int          // published a second time, because nobody confirmed
	allow  atomic.Int64 // what may be done twice after the faults so far
	faults []string
	rolls  int // processes started or stopped by roll

	effects *soakEffects // nil: not counted
}

func newSoakLeg(t *testing.T, kind, addr, name string, target string, idle func() (bool, error)) *soakLeg {
	t.Helper()
	path := ledgerFile(t)
	note, err := oracle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l := &soakLeg{t: t, kind: kind, addr: addr, name: name, note: note, idle: idle, proxy: faultproxy.New(t, target),
		more: map[string]func(time.Duration){}, faults: linkFaults()}
	through := l.proxy.Addr()
	if kind != "kafka" {
		through = throughProxy(t, addr, l.proxy.Addr())
	}
	l.child = &soakProcess{t: t, kind: kind, addr: through, name: name, ledger: path, note: note}
	t.Cleanup(func() {
		l.child.end()
		if l.guest != nil {
			l.guest.end()
		}
		_ = note.Close()
	})
	return l
}

// withGuest is for legs whose broker keeps the order of a key over two consumers.
func (l *soakLeg) withGuest() *soakLeg {
	guest := *l.child
	guest.addr = l.addr // its link stands when that of the child does not
	l.guest = &guest
	return l
}

// withEffects counts effects.
func (l *soakLeg) withEffects() *soakLeg {
	l.t.Helper()
	l.effects = newSoakEffects(l.t)
	l.child.tables = l.effects.Prefix()
	if l.guest != nil {
		l.guest.tables = l.effects.Prefix()
	}
	return l
}

func (l *soakLeg) add(fault string, f func(span time.Duration)) {
	l.more[fault] = f
	l.faults = append(l.faults, fault)
}

// publisherOf returns a publisher to where src reads from.
func publisherOf(ctx context.Context, src transport.Source) (transport.Publisher, string, error) {
	out, ok := src.(transport.Outlet)
	if !ok {
		return nil, "", fmt.Errorf("%T has no publisher", src)
	}
	return out.Publisher(ctx)
}

// produce sends numbered messages until done, each as often as it takes. It gives up
// only when ctx ends.
func (l *soakLeg) produce(ctx context.Context, done <-chan struct{}) error {
	addr := l.addr
	src, err := soakSource(l.kind, addr, l.name)
	if err != nil {
		return err
	}
	p, dest, err := publisherOf(ctx, src)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(context.Background()) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
		}
		var msgs []*longshore.Message // of different keys: a part that failed comes later than the others
		for i := l.sent; i < l.sent+soakKeys/2; i++ {
			id := fmt.Sprint(i)
			m := &longshore.Message{ID: id, Key: fmt.Appendf(nil, "k%d", i%soakKeys), Body: []byte(id)}
			m.Headers.Set(longshore.HeaderID, id) // who publishes again says that it is the same
			msgs = append(msgs, m)
		}
		for tries := 0; ; tries++ {
			trying, cancel := context.WithTimeout(ctx, 20*time.Second)
			err := p.Publish(trying, dest, msgs...)
			cancel()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return nil // the test has failed
			}
			if l.again += len(msgs); tries > 1000 {
				return fmt.Errorf("%s: publishing fails again and again: %w", l.kind, err)
			}
			<-tick.C
		}
		for _, m := range msgs {
			l.note.Published(m.ID, string(m.Key))
		}
		l.sent += len(msgs)
	}
}

// allowMore notes what a fault may cause to be done twice: what is in work, or done
// and not yet known to the broker. That is the window, and on Kafka what was done
// since the last commit.
func (l *soakLeg) allowMore(span time.Duration) {
	l.allow.Add(64)
	if l.kind == "kafka" {
		l.allow.Add(200 * int64(span/time.Second+2))
	}
}

// suffer does what the step says, and heals it.
func (l *soakLeg) suffer(s soakStep) {
	l.allowMore(s.span)
	wait := func() { <-time.After(s.span) }
	switch s.fault {
	case "kill -9", "SIGTERM", "SIGSTOP":
		l.strike(s.fault, wait)
	case "cut":
		l.proxy.CutAll()
	case "reset":
		l.proxy.ResetAll()
	case "black hole":
		l.proxy.BlackHole(true)
		wait()
		l.proxy.BlackHole(false)
	case "refuse":
		l.proxy.Refuse()
		l.proxy.CutAll()
		wait()
		if err := l.proxy.Listen(); err != nil {
			l.t.Error(err)
		}
	default:
		l.more[s.fault](s.span)
	}
}

// strike is a fault of the child itself.
func (l *soakLeg) strike(fault string, wait func()) {
	l.turns.Lock()
	defer l.turns.Unlock()
	switch fault {
	case "kill -9":
		l.child.kill()
		l.child.start()
	case "SIGTERM":
		l.child.stop()
		l.child.start()
	case "SIGSTOP":
		l.child.signal(syscall.SIGSTOP)
		wait()
		l.child.signal(syscall.SIGCONT)
	}
}

// roll starts and stops processes from time to time until done, as deployments do,
// whatever else happens to the leg.
func (l *soakLeg) roll(ctx context.Context, done <-chan struct{}, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.allowMore(0)
		l.rolls++
		switch {
		case l.guest == nil:
			l.strike("SIGTERM", nil)
		case l.guest.cmd == nil:
			l.guest.start()
		default:
			l.guest.stop()
		}
	}
}

// await waits until all are done, as long as some are done from time to time.
func (l *soakLeg) await() {
	l.t.Helper()
	for done := -1; ; {
		n := readLedger(l.t, l.child.ledger).Done()
		if n >= l.sent {
			return
		}
		if n == done {
			l.t.Fatalf("%s: %d of %d are done, and no more for a minute", l.kind, n, l.sent)
		}
		done = n
		for wait := time.Now().Add(time.Minute); time.Now().Before(wait) && readLedger(l.t, l.child.ledger).Done() == n; {
			<-time.After(100 * time.Millisecond)
		}
	}
}

// finish waits until everything is done and known to the broker, and compares.
func (l *soakLeg) finish(steps int) {
	l.t.Helper()
	l.await()
	l.child.stop()
	if l.guest != nil && l.guest.cmd != nil {
		l.guest.stop()
	}
	eventually(l.t, time.Minute, l.kind+": nothing is left at the broker", func() bool { ok, err := l.idle(); return ok && err == nil })
	may := int(l.allow.Load()) + l.again
	allow := oracle.Allow{Twice: may, Ordered: true}
	if l.guest != nil {
		allow.Overlaps = may // with one that has lost its messages and does not know it yet
	}
	r := check(l.t, readLedger(l.t, l.child.ledger), allow)
	l.t.Logf("%s: %d sent, %d of them again; %d faults, %d starts and stops; lost %d, handled twice %d (may be %d), overlapping %d, out of order %d",
		l.kind, l.sent, l.again, steps, l.rolls, len(r.Lost), len(r.Twice), may, len(r.Overlapped), len(r.Inverted))
	if l.effects != nil {
		l.effects.judge(l.t, l.kind, l.sent)
	}
}
