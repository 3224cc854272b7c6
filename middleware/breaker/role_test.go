package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
)

// journal is what handlers of several instances did, each with its dependency.
type journal struct {
	mu      sync.Mutex
	down    bool
	tried   int            // in vain
	asked   int            // since it changed
	by      map[string]int // instances
	last    map[string]int // by key
	done    map[string]int
	overrun []string // came after a later one of their key
}

func newJournal() *journal {
	return &journal{by: map[string]int{}, last: map[string]int{}, done: map[string]int{}}
}

func (j *journal) set(down bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.down, j.asked = down, 0
}

func (j *journal) ping(context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked++
	if j.down {
		return errors.New("the ledger is down")
	}
	return nil
}

func (j *journal) pings() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.asked
}

func (j *journal) read() (done, tried int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.done), j.tried
}

// instance is a handler; needs says that it cannot work while the dependency is down.
func (j *journal) instance(name string, needs bool) longshore.Handler {
	return handle(func(_ context.Context, d *longshore.Delivery) error {
		wait(time.Millisecond)
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.down && needs {
			j.tried++
			return errors.New("the ledger is down")
		}
		var n int
		key := string(d.Key)
		_, _ = fmt.Sscan(string(d.Body), &n)
		if n <= j.last[key] {
			j.overrun = append(j.overrun, key+":"+string(d.Body))
		}
		j.last[key] = n
		j.done[string(d.Body)]++
		j.by[name]++
		return nil
	})
}

// check wants each of n messages done once and in the order of its key.
func (j *journal) check(t *testing.T, n int) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for body, times := range j.done {
		if times != 1 {
			t.Errorf("%s was done %d times", body, times)
		}
	}
	if len(j.done) != n || len(j.overrun) > 0 {
		t.Errorf("%d of %d done; out of order: %v", len(j.done), n, j.overrun)
	}
}

const roleKeys = 24

// publishKeyed sends the bodies from … to-1, of some keys in turn.
func publishKeyed(t *testing.T, src transport.Source, from, to int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	p, self, err := src.(transport.Outlet).Publisher(ctx) //nolint:errcheck // ours are
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(ctx) }()
	var msgs []*longshore.Message
	for n := from; n < to; n++ {
		msgs = append(msgs, &longshore.Message{ID: fmt.Sprint(n), Key: fmt.Appendf(nil, "k%d", n%roleKeys), Body: fmt.Append(nil, n)})
	}
	if err := p.Publish(ctx, self, msgs...); err != nil {
		t.Fatal(err)
	}
}

// outageOfTheActive lets the dependency of the active instance fail under a single
// active queue, several times. The standby could work, and must not: it would do what
// is newer while the older waits. In the end the active one is stopped while it is held.
func outageOfTheActive(t *testing.T, src transport.Source) {
	declare(t, src)
	j := newJournal()
	b := newBreaker(t, breaker.Config{Name: "ledger", OpenFor: 30 * time.Millisecond, OpenMax: 30 * time.Millisecond, Consecutive: 3, Probe: j.ping, Ramp: -1})
	active := start(t, src, j.instance("active", true), container.Config{Order: container.ByKey, Middleware: []longshore.Middleware{b}, Workers: container.Workers{Min: 4, Max: 4}})
	standby := start(t, src, j.instance("standby", false), container.Config{Order: container.ByKey})
	eventually(t, "the standby stands by", func() bool { return standby.Stats().Standby })
	const rounds, each = 3, 100
	for n := range rounds {
		j.set(true)
		publishKeyed(t, src, 1+n*each, 1+(n+1)*each)
		eventually(t, "asked in vain", func() bool { return b.Status().State == breaker.Open && j.pings() > 3 })
		if done, _ := j.read(); done != n*each {
			t.Errorf("%d done, %d of them while the breaker was open", done, done-n*each)
		}
		if n == rounds-1 {
			break
		}
		j.set(false)
		eventually(t, "all done", func() bool { done, _ := j.read(); return done == (n+1)*each })
	}
	if st := active.Stats(); st.Generation != 1 || len(st.Reopens) != 0 || !standby.Stats().Standby {
		t.Errorf("the role has moved: %+v\n%+v", st, standby.Stats())
	}
	stop(t, active)
	eventually(t, "the standby did the rest", func() bool { done, _ := j.read(); return done == rounds*each })
	stop(t, standby)
	j.check(t, rounds*each)
	if j.by["active"] != (rounds-1)*each || j.by["standby"] != each {
		t.Errorf("done by %v", j.by)
	}
}

// F-F07: an open breaker leaves the single active consumer its role, and the order
// holds, over trials that fail and over a stop in the middle of it.
func TestOpenBreakerKeepsTheRole(t *testing.T) {
	t.Parallel()
	for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
		source := func(url string) transport.Source {
			return amqp.New(url, amqp.Config{}).Queue("ledger", amqp.QueueConfig{SingleActive: true, Declare: amqp.Declare{Type: kind}})
		}
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			outageOfTheActive(t, source(amqptest.New(t, amqptest.Config{}).URL))
		})
		t.Run(string(kind)+" on RabbitMQ", func(t *testing.T) {
			t.Parallel()
			outageOfTheActive(t, source(brokertest.AMQP(t)))
		})
	}
}

// member is a source that knows how many partitions its consumer has.
type member struct {
	transport.Source
	mu sync.Mutex
	c  transport.Consumer
}

func (s *member) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c = c
	return c, err
}

func (s *member) partitions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.c.(transport.Partitioner)
	if !ok {
		return -1
	}
	return p.Partitions()
}

// F-F07: a member of a group whose breaker is open, with records of a key parked,
// stays in the group with its partitions; nothing is done twice or out of order.
func TestOpenBreakerKeepsTheMember(t *testing.T) {
	t.Parallel()
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	group := func() *member {
		return &member{Source: kafka.New(k.ListenAddrs(), kafka.Config{}).Group("billing", []string{"ledger"}, kafka.GroupConfig{})}
	}
	j := newJournal()
	b := newBreaker(t, breaker.Config{Name: "ledger", OpenFor: 100 * time.Millisecond, OpenMax: 100 * time.Millisecond, Consecutive: 3, Ramp: -1})
	cfg := container.Config{Order: container.ByKey, Workers: container.Workers{Min: 4, Max: 4}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}
	one, two := group(), group()
	other := start(t, two, j.instance("two", false), cfg)
	cfg.Middleware = []longshore.Middleware{b}
	held := start(t, one, j.instance("one", true), cfg)
	shared := func() bool { return one.partitions() == 2 && two.partitions() == 2 }
	eventually(t, "both have partitions", shared)

	plain := one.Source
	publishKeyed(t, plain, 1, 101)
	eventually(t, "all done", func() bool { done, _ := j.read(); return done == 100 })
	var joins sync.Map
	k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup, kmsg.LeaveGroup}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
		joins.Store(fmt.Sprintf("%T", r), true)
		return true
	}})
	j.set(true)
	publishKeyed(t, plain, 101, 301)
	eventually(t, "trials fail", func() bool { _, tried := j.read(); return tried > 5 })
	if st := held.Stats(); st.Parked == 0 || !shared() {
		t.Errorf("%d parked, %d and %d partitions", st.Parked, one.partitions(), two.partitions())
	}
	j.set(false)
	eventually(t, "all done", func() bool { done, _ := j.read(); return done == 300 })
	if st := held.Stats(); st.Generation != 1 || len(st.Reopens) != 0 || !shared() {
		t.Errorf("generation %d, %d and %d partitions", st.Generation, one.partitions(), two.partitions())
	}
	joins.Range(func(what, _ any) bool { t.Errorf("the group was asked for %v", what); return true })
	if j.by["one"] == 0 || j.by["two"] == 0 {
		t.Errorf("done by %v", j.by)
	}
	stop(t, held)
	stop(t, other)
	j.check(t, 300)
}

// The trial of a half-open breaker is the oldest message in hand, also where the
// consumer stays; the others wait, and follow in order when it has worked.
func TestTrialComesFromWhatIsInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Config{})
		src := memoryQueue(m, memory.QueueConfig{SingleActive: true, CountsReturns: true, DeliveryLimit: 2, DeadLetter: "dead"})
		b := newBreaker(t, breaker.Config{Name: "ledger", OpenFor: 10 * time.Second, OpenMax: 10 * time.Second, Consecutive: 1, Ramp: -1})
		j := newJournal()
		j.set(true)
		one := container.OrderFunc(func(*longshore.Delivery) string { return "all" })
		var tried []string
		work := j.instance("one", true)
		c := start(t, src, handle(func(ctx context.Context, d *longshore.Delivery) error {
			j.mu.Lock()
			tried = append(tried, string(d.Body))
			j.mu.Unlock()
			return work.Handle(ctx, d)
		}), container.Config{Order: one, Middleware: []longshore.Middleware{b}, Workers: container.Workers{Min: 3, Max: 3}})
		publishKeyed(t, src, 1, 101)
		wait(time.Minute)
		j.mu.Lock()
		trials := len(tried)
		if others := slices.ContainsFunc(tried, func(body string) bool { return body != "1" }); others || trials < 3 {
			t.Errorf("tried %s", tried)
		}
		j.mu.Unlock()
		j.set(false)
		wait(time.Minute)
		stop(t, c)
		if len(tried) != trials+100 || m.Inspect("dead").Published != 0 || c.Stats().Generation != 1 {
			t.Errorf("%d tried, %d dead, %+v", len(tried), m.Inspect("dead").Published, c.Stats())
		}
		j.check(t, 100)
	})
}
