package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// Every feature in turn is what the suite meets.
func TestConformance(t *testing.T) {
	for name, cfg := range map[string]memory.QueueConfig{
		"default":         {},
		"dead-letter":     {DeadLetter: "dlq"},
		"batched":         {SettleLinger: 2 * time.Millisecond},
		"pull":            {Pull: true},
		"small-window":    {Prefetch: 6},
		"counts-returns":  {CountsReturns: true, DeliveryLimit: 20},
		"fifo":            {FIFO: true},
		"single-active":   {SingleActive: true},
		"partitions":      {Partitions: 3},
		"leased":          {Lease: time.Minute},
		"kept-lease":      {Lease: time.Minute, KeepLease: true},
		"max-delay":       {MaxDelay: time.Minute},
		"without-any":     {Without: memory.Delay | memory.Extend | memory.Attempts | memory.LiveResize},
		"without-window":  {Prefetch: 300},
		"attempts-absent": {Without: memory.Attempts},
	} {
		t.Run(name, func(t *testing.T) { transporttest.Run(t, harness(memory.New(memory.Config{}), cfg)) })
	}
}

func BenchmarkContract(b *testing.B) {
	transporttest.Bench(b, harness(memory.New(memory.Config{}), memory.QueueConfig{}))
}

func harness(b *memory.Broker, cfg memory.QueueConfig) transporttest.Harness {
	h := transporttest.Harness{Patience: 5 * time.Second, Quiet: 10 * time.Millisecond, Delay: 30 * time.Millisecond}
	queue := func(t testing.TB, change func(*memory.QueueConfig)) transport.Source {
		c, name := cfg, transporttest.Name(t)
		if c.DeadLetter != "" {
			c.DeadLetter = name + ".dlq"
		}
		change(&c)
		return b.Queue(name, c)
	}
	h.Source = func(t testing.TB) transport.Source { return queue(t, func(*memory.QueueConfig) {}) }
	h.Batched = func(t testing.TB) transport.Source {
		return queue(t, func(c *memory.QueueConfig) { c.SettleLinger = time.Hour })
	}
	h.Windowed = func(t testing.TB) (transport.Source, int) {
		return queue(t, func(c *memory.QueueConfig) { c.Prefetch = 5 }), 5
	}
	h.Leased = func(t testing.TB) (transport.Source, time.Duration) {
		return queue(t, func(c *memory.QueueConfig) { c.Lease, c.KeepLease = 20*time.Millisecond, true }), 20 * time.Millisecond
	}
	h.Missing = func(t testing.TB) transport.Source {
		return queue(t, func(c *memory.QueueConfig) { c.MustExist = true })
	}
	h.BadAuth = func(t testing.TB) transport.Source {
		src := h.Source(t)
		b.FailOpen(nameOf(src), -1, &longshore.Error{Code: longshore.CodeAuth, Op: "open", Err: errors.New("login refused")})
		return src
	}
	h.Drop = func(_ testing.TB, src transport.Source) { b.Drop(nameOf(src)) }
	h.TakeBack = func(_ testing.TB, src transport.Source) { b.TakeBack(nameOf(src)) }
	h.Latency = func(_ testing.TB, _ transport.Source, d time.Duration) { b.DelayAll(d) }
	h.Stall = func(testing.TB, transport.Source) func() {
		b.DelayAll(time.Hour)
		return func() { b.DelayAll(0) }
	}
	h.FailSettle = func(testing.TB, transport.Source) { b.FailSettle(1, errors.New("disk full")) }
	h.FailPublish = func(_ testing.TB, src transport.Source) { b.FailPublish(nameOf(src), 1, errors.New("disk full")) }
	h.Depth = func(_ testing.TB, src transport.Source) (int, int) {
		i := b.Inspect(nameOf(src))
		return i.Ready + i.Delayed, i.Unsettled
	}
	h.DeadLettered = func(_ testing.TB, src transport.Source) int {
		return b.Inspect(nameOf(src) + ".dlq").Ready
	}
	return h
}

func nameOf(src transport.Source) string {
	d, _ := src.(transport.Describer)
	return d.Describe().Name
}
