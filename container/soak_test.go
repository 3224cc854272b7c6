package container_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// The soak starts, stops, rescales, pauses and breaks a container at random while
// handlers fail, panic, hang and settle late, with latency on every verb of the
// transport, and compares what was published with what was settled (F-A06 among
// others: deliveries between cancel and its confirmation).
//
// LONGSHORE_SOAK=n runs n seeds instead of 40.
func TestSoak(t *testing.T) {
	seeds := 40
	if s := os.Getenv("LONGSHORE_SOAK"); s != "" {
		seeds, _ = strconv.Atoi(s)
	}
	if testing.Short() {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newSoak(t, seed).run() })
		})
	}
}

type soak struct {
	t     *testing.T
	rnd   *rand.Rand
	cfg   container.Config
	queue memory.QueueConfig
	b     *memory.Broker
	batch bool
	gate  *gate
	hold  *breaker

	mu        sync.Mutex
	published int
	perKey    map[string][]int // numbers published, in order
	ended     map[int]bool     // handled to an end that settles
	acks      map[int]int      // handlers that returned nil
	running   map[string]int   // handlers per key
	wrong     []string
	stray     int // handlers and leftover goroutines
}

func newSoak(t *testing.T, seed uint64) *soak {
	rnd := rand.New(rand.NewPCG(seed, 7))
	s := &soak{t: t, rnd: rnd, perKey: map[string][]int{}, ended: map[int]bool{}, acks: map[int]int{}, running: map[string]int{}}
	pick := func(n int) bool { return rnd.IntN(n) == 0 }
	s.queue = memory.QueueConfig{CountsReturns: pick(4), SingleActive: pick(4), Pull: pick(3)}
	if pick(2) {
		s.queue.SettleLinger = time.Duration(rnd.IntN(20)) * time.Millisecond
	}
	s.cfg = quiet(container.Config{
		Workers:      container.Workers{Min: 1 + rnd.IntN(4), Max: 4 + rnd.IntN(8)},
		Redelivery:   container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: 20 * time.Millisecond, Max: 3 * time.Second}},
		DeadLetter:   container.DeadLetter{To: "dead"},
		DrainTimeout: time.Duration(1+rnd.IntN(400)) * time.Millisecond,
		CancelGrace:  time.Duration(100+rnd.IntN(400)) * time.Millisecond,
		Reopen:       container.Backoff{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Order:        container.Unordered,
	})
	if pick(2) {
		s.cfg.Order = container.ByKey
	}
	if pick(3) {
		s.cfg.Lookahead = -1
	}
	if pick(3) {
		s.gate = newGate(3, 0)
		s.cfg.Throttle = s.gate
	}
	s.hold = &breaker{}
	if pick(3) {
		s.cfg.Settle = container.SettleManual
	}
	s.b = memory.New(memory.Config{})
	for _, op := range []memory.Op{memory.OpOpen, memory.OpReceive, memory.OpCancel, memory.OpRelease, memory.OpSettle, memory.OpFlush, memory.OpClose, memory.OpPublish} {
		if pick(2) {
			s.b.Delay(op, time.Duration(rnd.IntN(8))*time.Millisecond)
		}
	}
	return s
}

// n is a random number below limit; handlers ask too.
func (s *soak) n(limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(limit)
}

func (s *soak) run() {
	s.batch = s.cfg.Settle == container.SettleAuto && s.n(4) == 0
	if !s.batch {
		s.cfg.Middleware = []longshore.Middleware{s.hold}
	}
	for range 6 {
		s.publish(40)
		s.cycle(true)
	}
	for range 50 {
		if s.idle() {
			break
		}
		s.cycle(false)
	}
	s.settleDown()
	s.check()
}

func (s *soak) publish(n int) {
	pub, err := s.b.Publisher(memory.PublisherConfig{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer pub.Close(context.Background())
	for range n {
		key := fmt.Sprint("k", s.n(6))
		s.mu.Lock()
		no := s.published
		s.published++
		s.perKey[key] = append(s.perKey[key], no)
		s.mu.Unlock()
		m := &longshore.Message{ID: strconv.Itoa(no), Key: []byte(key), Body: []byte(strconv.Itoa(no))}
		if err := pub.Publish(context.Background(), "q", m); err != nil {
			s.t.Fatal(err)
		}
	}
}

// cycle is one run of a container, with faults or long enough to come to an end.
func (s *soak) cycle(faults bool) {
	cfg := s.cfg
	src := s.b.Queue("q", s.queue)
	var c *container.ListenerContainer
	var err error
	if s.batch {
		cfg.Batch = container.Batch{Size: 1 + s.n(5), Linger: 5 * time.Millisecond}
		c, err = container.NewBatch(src, s.handleBatch, cfg)
	} else {
		c, err = container.New(src, longshore.HandlerFunc(s.handle), cfg)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.Start(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	steps := 12
	if !faults {
		steps = 0
		wait(20 * time.Second)
	}
	for range steps {
		wait(time.Duration(s.n(120)) * time.Millisecond)
		s.fault(c)
	}
	c.Resume()
	s.hold.set(false)
	if s.gate != nil {
		s.gate.set(3)
	}
	var stops sync.WaitGroup
	for range 1 + s.n(2) {
		stops.Go(func() { _ = c.Stop(context.Background()) })
	}
	stops.Wait()
	budget := c.StopBudget() + 200*time.Millisecond
	if rep := c.Report(); rep.Took > budget {
		s.bad("stop took %v, more than %v: %v", rep.Took, budget, rep)
	}
	s.settleDown()
}

func (s *soak) strays(n int) {
	s.mu.Lock()
	s.stray += n
	s.mu.Unlock()
}

// settleDown waits for what a stop left behind, so that the next run does not
// overlap with it.
func (s *soak) settleDown() {
	eventually(s.t, "leftover handlers end", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.stray == 0
	})
}

func (s *soak) fault(c *container.ListenerContainer) {
	switch s.n(10) {
	case 7:
		s.hold.set(true)
	case 8:
		s.hold.set(false)
	case 9:
		if s.gate != nil {
			s.gate.set(s.n(5))
		}
	case 0:
		s.b.Drop("q")
	case 1:
		lo := 1 + s.n(4)
		_ = c.Scale(lo, lo+s.n(8))
	case 2:
		c.Pause()
	case 3:
		c.Resume()
	case 4:
		s.b.FailPublish("dead", s.n(3), errors.New("no"))
	case 5:
		s.b.FailOpen("q", s.n(3), &longshore.Error{Code: longshore.CodeUnreachable, Op: "open"})
	}
}

func wait(d time.Duration) { <-time.After(d) }

func (s *soak) bad(format string, args ...any) {
	s.mu.Lock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	s.mu.Unlock()
}

func (s *soak) handle(ctx context.Context, d *longshore.Delivery) error {
	no, _ := strconv.Atoi(string(d.Body))
	s.begin(d, no)
	err := s.act(ctx, d, no)
	s.end(d, no, err)
	if err == nil && s.cfg.Settle == container.SettleManual {
		_ = d.Ack(ctx) // its lane goes on from here; if it was lost it comes again
	}
	return err
}

func (s *soak) begin(d *longshore.Delivery, no int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stray++
	if s.acks[no] > 0 && !d.Origin.Redelivered && (!s.batch || d.Owned()) {
		s.wrong = append(s.wrong, fmt.Sprintf("message %d handled again without a redelivery", no))
	}
	if s.cfg.Order != container.Order(container.ByKey) {
		return
	}
	key := string(d.Key)
	if s.running[key]++; s.running[key] > 1 && !s.batch {
		s.wrong = append(s.wrong, fmt.Sprintf("two handlers of key %s at once (message %d)", key, no))
	}
	for _, before := range s.perKey[key] {
		if before >= no {
			break
		}
		if !s.ended[before] && !s.batch {
			s.wrong = append(s.wrong, fmt.Sprintf("message %d of key %s overtook %d", no, key, before))
		}
	}
}

func (s *soak) end(d *longshore.Delivery, no int, err error) {
	s.mu.Lock()
	s.running[string(d.Key)]--
	v, _ := longshore.VerdictOf(err)
	if err == nil {
		s.acks[no]++
	}
	if err == nil || v == longshore.VerdictReject || d.Attempt >= 3 {
		s.ended[no] = true
	}
	s.stray--
	s.mu.Unlock()
}

// act does what handlers do.
func (s *soak) act(ctx context.Context, d *longshore.Delivery, no int) (err error) {
	dice, short := s.n(24), time.Duration(s.n(30))*time.Millisecond
	switch dice {
	case 0:
		return errors.New("failed")
	case 1:
		defer func() { // begin and end must pair up
			if p := recover(); p != nil {
				err = fmt.Errorf("%v", p)
			}
		}()
		panic("a handler's panic")
	case 2:
		return longshore.Retry(errors.New("busy"), short)
	case 3:
		return longshore.Release(errors.New("not me"), short)
	case 4:
		return longshore.Reject(errors.New("never"))
	case 5, 6:
		wait(short * 30) // perhaps longer than the drain
		return nil
	case 7:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(short * 20):
			return nil
		}
	case 8:
		if s.cfg.Settle == container.SettleManual || s.batch { // there it would settle it
			return nil
		}
		s.strays(1)
		go func() { // a leftover goroutine that settles what is settled already
			defer s.strays(-1)
			wait(2 * time.Second)
			if err := d.Ack(context.Background()); !errors.Is(err, longshore.ErrSettled) && !errors.Is(err, longshore.ErrLost) && !errors.Is(err, longshore.ErrClosed) {
				s.bad("late ack of %d: %v", no, err)
			}
		}()
		return nil
	}
	wait(short / 4)
	return nil
}

func (s *soak) handleBatch(ctx context.Context, ds []*longshore.Delivery) error {
	failed := longshore.BatchError{}
	for i, d := range ds {
		if err := s.handle(ctx, d); err != nil {
			failed[i] = err
		}
	}
	return failed
}

func (s *soak) idle() bool {
	i := s.b.Inspect("q")
	return i.Ready == 0 && i.Unsettled == 0 && i.Delayed == 0
}

func (s *soak) check() {
	q, dead := s.b.Inspect("q"), s.b.Inspect("dead")
	if !s.idle() {
		s.bad("not idle: %+v", q)
	}
	// A message that was dead-lettered is acked too; a copy more is allowed only
	// where a connection was cut or a stop abandoned the handler in between.
	if q.Acked != uint64(s.published) {
		s.bad("published %d, settled %d", s.published, q.Acked)
	}
	for no := range s.published {
		if s.acks[no] == 0 && !s.ended[no] {
			s.bad("message %d was never handled to its end", no)
		}
	}
	if dead.Published == 0 {
		s.bad("nothing was dead-lettered: the soak does not reach it")
	}
	if n := s.b.Connections(); n != 0 {
		s.bad("%d connections left", n)
	}
	if s.gate != nil {
		if out, _ := s.gate.out(); out != 0 {
			s.bad("%d permits are out", out)
		}
	}
	for i, w := range s.wrong {
		if i > 10 {
			break
		}
		s.t.Error(w)
	}
}
