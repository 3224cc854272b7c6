package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/internal/doctor"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
)

func TestMain(m *testing.M) {
	p, err := planOfChild()
	if p == nil && err == nil {
		goleak.VerifyTestMain(m)
		return
	}
	if err == nil {
		go func() { // nobody outlives the test, however that ends
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = map[role]func(context.Context, *plan) error{producer: produce, consumer: consume}[p.Role](ctx, p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(3)
	}
}

// A producer and three consumers are killed with SIGKILL again and again, connections
// cut, database sessions ended, messages published twice. The short form.
func TestKilledAtRandomEachMessageHasOneEffect(t *testing.T) {
	for _, broker := range []string{"rabbitmq", "kafka", "sqs"} {
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			soak(t, embedded(t, broker, 120, 40), 4)
		})
	}
}

// The control: the same without the mutex must leave double effects, or the test above
// shows nothing.
func TestWithoutTheMutexThereAreDoubleEffects(t *testing.T) {
	t.Parallel()
	s := embedded(t, "rabbitmq", 120, 40)
	s.plan.Naked = true
	c := newCrew(t, s.plan)
	work(s, c, 3)
	eventually(t, "each message has an effect", func() bool { return s.paid() == s.plan.Messages })
	c.dismiss(consumer)
	if s.twice() == 0 {
		t.Error("no double effects: the faults do not reach the handlers")
	}
}

// The long form: LONGSHORE_MUTEX_SOAK=20000 is the number of messages; 50 are killed.
func TestSoakOnRealBrokers(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("LONGSHORE_MUTEX_SOAK"))
	if n == 0 {
		t.Skip("set LONGSHORE_MUTEX_SOAK to a number of messages, or use `make soak-mutex`")
	}
	for _, broker := range []string{"rabbitmq", "kafka", "sqs"} {
		t.Run(broker, func(t *testing.T) { soak(t, real(t, broker, n, max(n/20, 1)), 50) })
	}
}

func soak(t *testing.T, s *site, kills int) {
	began := time.Now()
	c := newCrew(t, s.plan)
	cuts, sessions := work(s, c, kills)
	eventually(t, "all is sold and sent", func() bool { return s.ordered() == s.plan.Messages && s.unsent() == 0 })
	d := s.doctor(t)
	eventually(t, "what has no effect is a dead letter", func() bool { return s.paid()+s.rows() == s.ordered() && d.allDead(t) })
	c.dismiss(consumer)
	delivered, runs := s.ledger()
	first := s.paid()
	s.judge(t, "while they were killed")

	c.plan.Healthy = true
	for range consumers {
		c.hire(consumer)
	}
	done := d.cure(t)
	eventually(t, "each order is paid", func() bool { return s.rows() == 0 && s.paid() == s.ordered() })
	c.dismiss(consumer)
	c.dismiss(producer)
	s.judge(t, "after the dead letters were rerun")
	if n := s.unsent(); n != 0 {
		t.Errorf("%d rows in the outbox", n)
	}
	t.Logf("%s, %s: %d messages in %v; killed: %d producers, %d consumers; connections cut %d times, %d sessions ended; "+
		"%d deliveries, %d runs of the handler; %d effects, then %d dead letters rerun, %d copies deleted: %d messages, %d effects",
		s.plan.Broker, s.plan.Driver, s.plan.Messages, time.Since(began).Round(time.Second), c.killed[producer], c.killed[consumer], cuts, sessions,
		delivered, runs, first, done.Rerun, done.Deleted, s.ordered(), s.effects())
}

// work lets the crew work and kills, spread over the whole of it. Time alone kills as
// well, so that a crew that comes to nothing because it is killed is killed again.
func work(s *site, c *crew, kills int) (cuts, sessions int) {
	c.hire(producer)
	for range consumers {
		c.hire(consumer)
	}
	for i := range kills {
		eventually(s.t, "progress", func() bool { return s.paid() >= s.plan.Messages*9/10*i/kills })
		s.joined(consumers + c.killed[consumer])
		c.killOne()
		if i%3 == 1 && s.proxy != nil {
			cuts++
			s.proxy.ResetAll()
		}
		if i%3 == 2 {
			sessions += s.endSession()
		}
	}
	s.joined(consumers + c.killed[consumer]) // who has not started yet cannot stop in good order
	return cuts, sessions
}

func (s *site) judge(t *testing.T, when string) {
	t.Helper()
	if twice, undone := s.twice(), s.undone(); twice != 0 || undone != 0 {
		t.Errorf("%s: %d messages with more than one effect, %d of transactions that were rolled back", when, twice, undone)
	}
	if paid, all := s.paid(), s.effects(); paid != all || paid+s.rows() != s.ordered() {
		t.Errorf("%s: %d orders, %d with an effect, %d effects, %d rows", when, s.ordered(), paid, all, s.rows())
	}
}

// surgery looks at rows, queue and dead letters together.
type surgery struct {
	c           doctor.Case
	dead, queue transport.Source
}

func (s *site) doctor(t *testing.T) *surgery {
	t.Helper()
	once, err := s.plan.mutex(s.db)
	if err != nil {
		t.Fatal(err)
	}
	dead, err1 := s.plan.source(s.plan.Addr, s.plan.dead())
	queue, err2 := s.plan.source(s.plan.Addr, s.plan.Queue)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	d := &surgery{dead: dead, queue: queue, c: doctor.Case{Rows: once.Rows, Headers: []string{mutex.HeaderMutex}, Limit: 100_000}}
	d.c.Dead, _ = dead.(transport.Browser)
	return d
}

// allDead: each row that is left has a dead letter.
func (d *surgery) allDead(t *testing.T) bool {
	t.Helper()
	r, err := doctor.Examine(t.Context(), d.c)
	if err != nil || len(r.Unknown) > 0 {
		t.Fatal(err, r.Unknown)
	}
	for _, f := range r.Found {
		if f.Row == mutex.Yes && f.DeadLetter != mutex.Yes {
			return false
		}
	}
	return true
}

// cure reruns and deletes until no dead letter is left. The queue counts as empty: that
// nothing waits in it was seen before.
func (d *surgery) cure(t *testing.T) (done doctor.Applied) {
	t.Helper()
	eventually(t, "no dead letter is left", func() bool {
		r, err := doctor.Examine(t.Context(), d.c)
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for i, f := range r.Found {
			in := f.Lookup
			in.Queue = mutex.No
			r.Found[i].Finding = mutex.Diagnose(in)
			if f.DeadLetter == mutex.Yes {
				left++
			}
		}
		n, err := doctor.Apply(t.Context(), d.c, r.Found, d.dead, d.queue, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		done.Rerun += n.Rerun
		done.Deleted += n.Deleted
		return left == 0
	})
	return done
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(4 * time.Minute)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
		<-tick.C
	}
}
