package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
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

// BenchmarkViewers is what 20 viewers of 100 containers cost over real connections while each
// container has a message a second, their clients in this process included; run it with
// -benchtime 20x: an operation is a second. base is the same without viewers.
func BenchmarkViewers(b *testing.B) {
	a, broker := manyContainers(b, 100)
	if err := a.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
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
	cpu := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	began, used, mem := time.Now(), cpu(), heap()
	for range 10 {
		second()
	}
	base := 100 * float64(cpu()-used) / float64(time.Since(began))
	for range 20 {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+a.Addr()+"/api/events", nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+annas)
		res, err := http.DefaultClient.Do(r) //nolint:bodyclose // closed below
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		go func() {
			buf := make([]byte, 64<<10)
			for {
				if _, err := res.Body.Read(buf); err != nil {
					return
				}
			}
		}()
	}
	second()
	began, used = time.Now(), cpu()
	for b.Loop() {
		second()
	}
	b.ReportMetric(100*float64(cpu()-used)/float64(time.Since(began)), "%core")
	b.ReportMetric(base, "%core-base")
	b.ReportMetric(heap(), "MiB")
	b.ReportMetric(mem, "MiB-base")
	_ = a.Stop(b.Context())
}
