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
	peak, quit, done := uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				peak = max(peak, inUse())
			}
		}
	}()
	s, err := route(n, a.source(), b.source())
	close(quit)
	<-done
	if err != nil {
		return err
	}
	grown := float64(peak-min(peak, before)) / (1 << 20)
	r.table(fmt.Sprintf("Bridge from Kafka to Kafka, a backlog of %d messages of 100 bytes, window %d", n, bridgeWindow), []string{"msg/s", "client CPU µs/msg", "most memory, MiB"},
		[][]string{{fmt.Sprintf("%.0f", s.rate()), fmt.Sprintf("%.1f", s.cpuPer()/1000), fmt.Sprintf("%.0f", grown)}})
	r.bar("bridge, memory", fmt.Sprintf("%.0f MiB", grown), "≤ 64 MiB beside the window", grown <= 64)
	return nil
}

// inUse is the live and the not yet collected heap, with stacks and the runtime's own.
func inUse() uint64 {
	s := []runtimemetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	runtimemetrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64() - s[2].Value.Uint64()
}
