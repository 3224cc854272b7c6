package share

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
)

// Config is how a member consumes.
type Config struct {
	Client *kgo.Client      // for its connections; it consumes nothing itself
	Group  string           // to join
	Topics []string         // to subscribe to
	Unpack kgo.Decompressor // decompresses batches, as the client does for its own consumers
	Linger time.Duration    // how long a verdict waits for others if no fetch carries it
	Events Events           // hears what happens to the records
	Absent bool             // join at the first Enter only
	// Called hears how long calls took; nil: nothing does.
	Called func(kind longshore.OperationKind, began time.Time, err error)
}

func (c *Config) called(kind longshore.OperationKind, began time.Time, err error) {
	if c.Called != nil {
		c.Called(kind, began, err)
	}
}

// carried reports the call that carried a parcel.
func (c *Config) carried(p *Parcel, began time.Time, err error) {
	if c.Called == nil || p.Empty() {
		return
	}
	for _, kind := range p.kinds() {
		c.Called(kind, began, err)
	}
}

// Events hears what happens to a member. The methods are called in order, with the member's
// lock held: they must return at once and must not call the member.
type Events interface {
	// Arrived: these records are held now.
	Arrived(rs []*Record)
	// Lost: the broker has these records back, or is about to deliver them again.
	Lost(rs []*Record, why error)
	// Failed: a verdict was accepted and the broker has not carried it out.
	Failed(r *Record, v Verdict, why error)
	// Undecodable: a batch could not be decoded, and its n records were released.
	Undecodable(topic string, num int32, n int, why error)
	// Troubled begins or repeats a condition of a name, and Recovered ends it.
	Troubled(condition string, why error)
	Recovered(condition string)
	// Down: the member cannot go on. It closes its sessions, so what it holds is about to be lost.
	Down(why error)
}

// Member is a member of a share group, from Join to Close.
type Member struct {
	cfg  Config             // as it was joined with
	id   string             // chosen by the member, for its whole life
	life context.Context    //nolint:containedctx // of all requests; ends with Close
	end  context.CancelFunc // ends life
	beat context.CancelFunc // ends the heartbeats
	wg   sync.WaitGroup     // all goroutines

	stale    chan struct{} // the leaders are to be read again; holds one
	presence chan struct{} // the next heartbeat is due at once; holds one

	mu      sync.Mutex // guards what follows, and links and leases with it
	changes changes    // what callers wait for
	leases  *Leases    // the records that it holds
	layout  layout     // which partitions there are, and where
	links   links      // to the leaders
	phase   phase      // how far it has come
	absent  bool       // the member subscribes to nothing, or has not joined yet
	wanted  int        // how many more records the caller takes now; 0 outside phaseConsuming
	hurried int        // how many callers wait for verdicts to be carried out
}

// phase is how far a member has come. It never goes back.
type phase uint8

const (
	phaseConsuming phase = iota
	phaseCanceled        // nothing is acquired any more
	phaseDown            // the member cannot go on, and closes its sessions
	phaseClosing         // Close was called
)

// enter goes to a phase, unless a later one has begun. The caller holds mu.
func (m *Member) enter(p phase) {
	m.phase, m.wanted = max(m.phase, p), 0
	m.changes.announce()
}

// changes wakes those that wait for a change. The member's lock guards it.
type changes struct {
	next chan struct{} // closed and replaced at each change
}

func (c *changes) announce() {
	close(c.next)
	c.next = make(chan struct{})
}

// Join makes a member and starts it. It makes no call by itself: an error shows in Events.
func Join(cfg Config) *Member {
	m := &Member{cfg: cfg, id: newID(), stale: make(chan struct{}, 1), presence: make(chan struct{}, 1), absent: cfg.Absent, changes: changes{make(chan struct{})},
		leases: NewLeases(), layout: newLayout(), links: links{at: map[int32]*link{}}}
	m.life, m.end = context.WithCancel(context.Background())
	beats, stop := context.WithCancel(m.life)
	m.beat = stop
	m.wg.Go(func() { m.heartbeats(beats) })
	m.wg.Go(m.watch)
	m.wg.Go(m.follow)
	return m
}

// newID is a UUID as Kafka writes it.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Want says how many records the caller takes from now on, beyond those that have arrived.
func (m *Member) Want(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.phase > phaseConsuming {
		return
	}
	m.wanted = n
	if n > 0 {
		m.links.wakeAll()
	}
}

// Leave makes the member subscribe to nothing, so that the other members get its partitions. It
// stays in the group, because a broker may release what a member that is gone has held. Enter
// undoes that.
func (m *Member) Leave() { m.setAbsent(true) }

// Enter makes the member subscribe to its topics, and join the group if it has not. After Cancel it does nothing.
func (m *Member) Enter() { m.setAbsent(false) }

func (m *Member) setAbsent(absent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.absent = absent || m.phase > phaseConsuming
	select {
	case m.presence <- struct{}{}:
	default:
	}
}

// Settle accepts a verdict on a record that is held, and calls note with the record before
// any request can carry the verdict. note must not call the member; nil: there is none.
// Errors: ErrLost, ErrSettled.
func (m *Member) Settle(token uint64, v Verdict, note func(*Record)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.leases.Settle(token, v, time.Now())
	if err != nil {
		return err
	}
	if note != nil {
		note(r)
	}
	m.links.settled(r.session)
	return nil
}

// Owned reports with nil that a record can be settled. Errors: ErrLost, ErrSettled.
func (m *Member) Owned(token uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.leases.find(token, time.Now())
	return err
}

// Renew renews the lock of a record and waits for the answer. Errors: ErrLost, ErrSettled,
// ctx's.
func (m *Member) Renew(ctx context.Context, token uint64) error {
	done := make(chan error, 1)
	m.mu.Lock()
	session, err := m.leases.Renew(token, time.Now(), done)
	if err == nil {
		m.links.wake(session)
	}
	m.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Held is how many records are held, with or without a verdict.
func (m *Member) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases.Len()
}

// Cancel stops acquiring, unsubscribes, and waits for the answers to the fetches that are
// on their way. What is held can still be settled.
func (m *Member) Cancel(ctx context.Context) error {
	m.Leave()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enter(phaseCanceled)
	return m.until(ctx, func() bool { return !m.links.fetching() })
}

// Flush waits until the broker has answered every verdict.
func (m *Member) Flush(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hurried++
	defer func() { m.hurried-- }()
	m.links.wakeAll()
	return m.until(ctx, func() bool { return m.leases.Unanswered() == 0 })
}

// Close sends the verdicts that are left, closes the sessions, which releases what is held,
// and leaves the group. It returns within ctx's time, and the broker finds out by itself then.
func (m *Member) Close(ctx context.Context) {
	m.mu.Lock()
	m.enter(phaseClosing)
	m.links.wakeAll()
	m.mu.Unlock()
	m.beat()
	done := make(chan struct{})
	go func() {
		m.linksEnded(ctx)
		_ = leave(ctx, m.cfg.Client, m.cfg.Group, m.id) // else the broker removes the member after the session's time
		m.end()
		m.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		m.end()
		<-done
	}
}

// linksEnded waits until every link has closed its session.
func (m *Member) linksEnded(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.until(ctx, func() bool { return len(m.links.at) == 0 }) // what is left ends with life
}

// fail ends the member from inside, once. The caller holds mu.
func (m *Member) fail(why error) {
	if m.ending() {
		return
	}
	m.enter(phaseDown)
	m.links.wakeAll()
	m.cfg.Events.Down(why)
}

// ending reports whether the sessions are to be closed. The caller holds mu.
func (m *Member) ending() bool { return m.phase >= phaseDown }

// until waits for a condition, which is checked with mu held. Errors: ctx's.
func (m *Member) until(ctx context.Context, cond func() bool) error {
	for !cond() {
		if err := ctx.Err(); err != nil {
			return err
		}
		changed := m.changes.next
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		case <-m.life.Done():
		}
		m.mu.Lock()
		if m.life.Err() != nil && !cond() {
			return m.life.Err()
		}
	}
	return nil
}

// report passes on what became of records. The caller holds mu.
func (m *Member) report(out Outcome) {
	out.sorted()
	if len(out.Lost) > 0 {
		m.cfg.Events.Lost(out.Lost, out.Err)
	}
	for _, r := range out.Failed {
		m.cfg.Events.Failed(r, r.verdict, out.Err)
	}
	if len(out.Lost)+len(out.Failed) > 0 {
		m.changes.announce()
	}
}

// watch renews locks, and finds those that have ended.
func (m *Member) watch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		m.mu.Lock()
		out, renew, next := m.leases.Watch(time.Now())
		m.report(out)
		for _, session := range renew {
			m.links.wake(session)
		}
		m.mu.Unlock()
		timer.Reset(min(next, 250*time.Millisecond)) // what arrives meanwhile may be due sooner
		select {
		case <-timer.C:
		case <-m.life.Done():
			return
		}
	}
}
