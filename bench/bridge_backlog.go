package main

import (
	"errors"
	"fmt"
	"runtime"
	runtimemetrics "runtime/metrics"
	"time"
)

// bridgeBacklog moves a backlog of a million messages between two Kafka topics and watches the memory
// of the process: it must not grow with the backlog. The ledger remembers the last 524,288 messages,
// which is the greater part of what it takes.
func bridgeBacklog(o options, r *report) (err error) {
	n := o.count(1_000_000)
	a, err := newKafkaEnd()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.remove()) }()
	b, err := newKafkaEnd()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	if err := fillEnd(a, n, 100); err != nil {
		return err
	}
	runtime.GC()
	before := inUse()
	var peak footprint
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				now := inUse()
				peak = footprint{max(peak.live, now.live), max(peak.all, now.all)}
			}
		}
	}()
	s, err := route(n, a.source(), b.source())
	close(quit)
	<-done
	if err != nil {
		return err
	}
	live, all := mib(peak.live, before.live), mib(peak.all, before.all)
	r.table(fmt.Sprintf("Bridge from Kafka to Kafka, a backlog of %d messages of 100 bytes, window %d", n, bridgeWindow),
		[]string{"msg/s", "client CPU µs/msg", "most live memory, MiB", "with garbage and stacks, MiB"},
		[][]string{{fmt.Sprintf("%.0f", s.rate()), fmt.Sprintf("%.1f", s.cpuPer()/1000), fmt.Sprintf("%.0f", live), fmt.Sprintf("%.0f", all)}})
	r.bar("bridge, live memory", fmt.Sprintf("%.0f MiB", live), "≤ 64 MiB, records fetched ahead included", live <= 64)
	return nil
}

// footprint is what the process uses: live is what the last collection found in use, all has garbage,
// stacks and the runtime's own.
type footprint struct{ live, all uint64 }

func mib(now, before uint64) float64 { return float64(now-min(now, before)) / (1 << 20) }

func inUse() footprint {
	s := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	runtimemetrics.Read(s)
	return footprint{s[0].Value.Uint64(), s[1].Value.Uint64() - s[2].Value.Uint64() - s[3].Value.Uint64()}
}
