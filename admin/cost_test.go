package admin_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// manyContainers serves n containers.
func manyContainers(tb testing.TB, n int) (*admin.Server, *memory.Broker) {
	tb.Helper()
	b := memory.New(memory.Config{})
	cfg := operators()
	cfg.Addr, cfg.Logger = "127.0.0.1:0", zap.NewNop()
	for i := range n {
		c, err := container.New(b.Queue(fmt.Sprintf("q-%03d", i), memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), container.Config{Logger: zap.NewNop()})
		if err != nil {
			tb.Fatal(err)
		}
		if err := c.Start(tb.Context()); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = c.Stop(context.Background()) })
		cfg.Containers = append(cfg.Containers, c)
	}
	a, err := admin.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return a, b
}

// However many look, each container is read and marshalled once: a tick with 20 viewers
// makes no more than a few allocations more for each of them than a tick with one.
func TestOnceForAllViewers(t *testing.T) {
	a, _ := manyContainers(t, 100)
	at := time.Now()
	tick := func() {
		at = at.Add(time.Second)
		admin.Tick(a, at)
	}
	done := make(chan struct{})
	var read sync.WaitGroup
	defer read.Wait()
	defer close(done)
	count := func(viewers int) float64 {
		for range viewers {
			ch, stop := admin.Subscribe(a)
			defer stop()
			read.Go(func() {
				for {
					select {
					case _, ok := <-ch:
						if !ok {
							return
						}
					case <-done:
						return
					}
				}
			})
		}
		return leastAllocs(tick)
	}
	nobody := leastAllocs(tick)
	one, twenty := count(1), count(20)
	t.Logf("allocations of a tick with 100 containers: %.0f without a viewer, %.0f with one, %.0f with 20", nobody, one, twenty)
	// Marshalling for each viewer would add one-nobody for each, about 1,700.
	if twenty > one+19*50 {
		t.Errorf("a tick for 20 viewers makes %.0f allocations, for one %.0f", twenty, one)
	}
	if nobody >= one {
		t.Errorf("without a viewer a tick makes %.0f allocations, with one %.0f", nobody, one)
	}
}

// leastAllocs is the least of several counts: the containers beside allocate too.
func leastAllocs(f func()) float64 {
	least := testing.AllocsPerRun(3, f)
	for range 9 {
		least = min(least, testing.AllocsPerRun(3, f))
	}
	return least
}

// watchers opens n streams over real connections; each calls heard when it has read the
// points of a second. Their cost is in this process too.
func watchers(tb testing.TB, a *admin.Server, n int, heard func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	client := &http.Client{Transport: &http.Transport{}}
	var reading sync.WaitGroup
	tb.Cleanup(func() { cancel(); reading.Wait(); client.CloseIdleConnections() })
	for range n {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.Addr()+"/api/events", nil)
		if err != nil {
			tb.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+annas)
		res, err := client.Do(r)
		if err != nil {
			tb.Fatal(err)
		}
		reading.Go(func() {
			defer res.Body.Close()
			lines := bufio.NewReaderSize(res.Body, 64<<10)
			for {
				line, err := lines.ReadSlice('\n')
				if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
					return
				}
				if string(line) == "event: points\n" {
					heard()
				}
			}
		})
	}
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heapInUse is what is reachable, in MiB.
func heapInUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what a pool kept
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// 100 containers with 20 viewers cost less than 3 % of a core and 32 MiB, the viewers' own
// side included. Each second is made to pass as soon as all viewers have seen the last one,
// and each container gets a message in it, so that every number changes.
func TestHundredContainersAndTwentyViewersAreCheap(t *testing.T) {
	const containers, viewers, seconds = 100, 20, 60
	before := heapInUse()
	a, broker := manyContainers(t, containers)
	bare := heapInUse()
	outlet, _ := broker.Queue("q-000", memory.QueueConfig{}).(transport.Outlet)
	pub, _, err := outlet.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	work := func() {
		for i := range containers {
			if err := pub.Publish(t.Context(), fmt.Sprintf("q-%03d", i), &longshore.Message{Body: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	spend := func(second func()) time.Duration {
		began := processorTime()
		for range seconds {
			second()
		}
		return (processorTime() - began) / seconds
	}
	work()
	idle := spend(work)
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{}, 10*viewers)
	watchers(t, a, viewers, func() {
		select {
		case heard <- struct{}{}:
		default: // the server ticks by itself too, and after the last round nothing reads
		}
	})
	at := time.Now().Add(time.Minute)
	watched := spend(func() {
		work()
		at = at.Add(time.Second)
		admin.Tick(a, at)
		for range viewers {
			select {
			case <-heard:
			case <-time.After(30 * time.Second):
				t.Fatal("a viewer did not see the points of a second")
			}
		}
	})
	memory := heapInUse() - before
	if err := a.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	core := 100 * (watched - idle).Seconds()
	t.Logf("a second of %d containers and %d viewers: %.2f %% of a core (%v; without the server %v), %.1f MiB (the containers alone %.1f)",
		containers, viewers, core, watched, idle, memory, bare-before)
	if core > 3*raceFactor {
		t.Errorf("%.2f %% of a core, at most 3 are allowed", core)
	}
	if memory > 32 {
		t.Errorf("%.1f MiB, at most 32 are allowed", memory)
	}
}

// BenchmarkViewers is the same in real time, with its clients: run it with -benchtime 20x, an
// operation is a second. base is without server and viewers.
func BenchmarkViewers(b *testing.B) {
	a, broker := manyContainers(b, 100)
	outlet, _ := broker.Queue("q-000", memory.QueueConfig{}).(transport.Outlet)
	pub, _, err := outlet.Publisher(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	second := func() {
		for i := range 100 {
			if err := pub.Publish(b.Context(), fmt.Sprintf("q-%03d", i), &longshore.Message{Body: []byte("x")}); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(time.Second) //nolint:forbidigo // a benchmark of time that passes
	}
	began, used, mem := time.Now(), processorTime(), heapInUse()
	for range 10 {
		second()
	}
	base := 100 * float64(processorTime()-used) / float64(time.Since(began))
	if err := a.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	watchers(b, a, 20, func() {})
	second()
	began, used = time.Now(), processorTime()
	for b.Loop() {
		second()
	}
	b.ReportMetric(100*float64(processorTime()-used)/float64(time.Since(began)), "%core")
	b.ReportMetric(base, "%core-base")
	b.ReportMetric(heapInUse(), "MiB")
	b.ReportMetric(mem, "MiB-base")
	_ = a.Stop(context.Background())
}

// through sends n messages through a container, watched by so many viewers (-1: without an
// admin server), and returns how long it took, and what processor time and how many allocations
// a message cost.
func through(tb testing.TB, n, viewers int) (took, processor time.Duration, allocs float64) {
	tb.Helper()
	broker := memory.New(memory.Config{})
	src := broker.Queue("orders", memory.QueueConfig{})
	var handled atomic.Int64
	all := make(chan struct{})
	c, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		if handled.Add(1) == int64(n) {
			close(all)
		}
		return nil
	}), container.Config{Order: container.ByKey, Workers: container.Workers{Min: 8, Max: 8}, Logger: zap.NewNop()})
	if err != nil {
		tb.Fatal(err)
	}
	outlet, _ := src.(transport.Outlet)
	pub, self, err := outlet.Publisher(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	msgs := make([]*longshore.Message, n)
	for i := range msgs {
		msgs[i] = &longshore.Message{ID: "m", Key: fmt.Appendf(nil, "key-%d", i*7919%10000), Body: make([]byte, 256)}
	}
	if err := pub.Publish(tb.Context(), self, msgs...); err != nil {
		tb.Fatal(err)
	}
	if viewers >= 0 {
		cfg := operators()
		cfg.Addr, cfg.Logger, cfg.Containers = "127.0.0.1:0", zap.NewNop(), []*container.ListenerContainer{c}
		a, err := admin.New(cfg)
		if err != nil {
			tb.Fatal(err)
		}
		if err := a.Start(tb.Context()); err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = a.Stop(context.Background()) }()
		watchers(tb, a, viewers, func() {})
	}
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	began, used := time.Now(), processorTime()
	if err := c.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	<-all
	took, processor = time.Since(began), (processorTime()-used)/time.Duration(n)
	runtime.ReadMemStats(&is)
	if err := c.Stop(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return took, processor, float64(is.Mallocs-was.Mallocs) / float64(n)
}

// The server and its viewers add nothing to a message: what they read they read twice a second,
// from sums that the container keeps for itself.
func TestViewersAddNothingToAMessage(t *testing.T) {
	const n = 20_000 / raceFactor // with the race detector the container checks its sums at each step
	least := func(viewers int) float64 {
		least := math.Inf(1)
		for range 3 {
			_, _, allocs := through(t, n, viewers)
			least = min(least, allocs)
		}
		return least
	}
	without, with := least(-1), least(20)
	t.Logf("allocations for a message: %.2f without a server, %.2f with 20 viewers", without, with)
	if with > without+0.5*raceFactor {
		t.Errorf("a message makes %.2f allocations with 20 viewers, %.2f without a server", with, without)
	}
}

// BenchmarkHotPath is a message through the container without an admin server, and with one
// that 20 viewers look at.
func BenchmarkHotPath(b *testing.B) {
	for _, c := range []struct {
		name    string
		viewers int
	}{{"server=none", -1}, {"viewers=0", 0}, {"viewers=20", 20}} {
		b.Run(c.name, func(b *testing.B) {
			took, processor, allocs := through(b, b.N, c.viewers)
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/op")
			b.ReportMetric(float64(processor), "cpu-ns/op")
			b.ReportMetric(allocs, "allocs/op")
		})
	}
}
