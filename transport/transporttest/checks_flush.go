package transporttest

import (
	"context"
	"slices"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func flushChecks() []check {
	return []check{
		{name: "flush-confirms", needs: needs("Drop"), run: flushConfirms},
		{name: "flush-waits", needs: needs("Latency", "Drop"), run: flushWaits},
		{name: "flush-after-drop", needs: needs("Drop"), run: flushAfterDrop},
		{name: "flush-bounded", needs: needs("Stall"), run: flushBounded},
	}
}

// What Flush has confirmed stays settled whatever happens next.
func flushConfirms(e *env) {
	src := e.h.Batched(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(6)...)
	ds := s.take(6)
	s.ack(ds[:5]...)
	s.flush()
	e.h.Drop(e, src)
	e.until("Observer.Down", s.obs.isDown)
	s.shut()
	e.holds(src, "after five of six were acked, flushed, and the connection was cut", string(ds[5].Body))
	for _, d := range ds[:5] {
		if n := len(s.obs.failures(d)); n > 0 {
			e.Errorf("%s: reported as failed after Flush had confirmed it", d.Body)
		}
	}
}

// The same where answers take their time: Flush waits for them.
func flushWaits(e *env) {
	src := e.h.Batched(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(4)...)
	ds := s.take(4)
	e.h.Latency(e, src, e.h.Quiet)
	s.ack(ds...)
	s.flush()
	e.h.Drop(e, src)
	e.h.Latency(e, src, 0)
	e.until("Observer.Down", s.obs.isDown)
	s.shut()
	e.holds(src, "after Flush on a slow link")
}

// Accepted, unsent, and the connection is gone: each is reported, and Flush says so.
func flushAfterDrop(e *env) {
	src := e.h.Batched(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(4)...)
	ds := s.take(4)
	s.ack(ds...)
	e.h.Drop(e, src)
	e.until("Observer.Down", s.obs.isDown)
	err := e.do("Flush", s.Flush)
	s.shut()
	back := e.leftover(src)
	var reported []string
	for _, d := range ds {
		failed := s.obs.failures(d)
		if len(failed) > 1 {
			e.Errorf("%s: reported as failed %d times", d.Body, len(failed))
		}
		if len(failed) > 0 {
			reported = append(reported, string(d.Body))
			if failed[0].Verb != longshore.VerbAck {
				e.Errorf("%s: a failed %s was reported, it was acked", d.Body, failed[0].Verb)
			}
		}
	}
	for _, b := range back {
		if !slices.Contains(reported, b) {
			e.Errorf("%s was acked, came back, and was not reported as failed", b)
		}
	}
	if len(reported) > 0 && err == nil {
		e.Errorf("Flush returned nil although these were not settled: %v", reported)
	}
}

func flushBounded(e *env) {
	src := e.h.Batched(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, "a")
	d := s.take(1)[0]
	resume := e.h.Stall(e, src)
	s.ack(d)
	var err error
	back, _ := e.attempt(e.h.Quiet, func(ctx context.Context) error { err = s.Flush(ctx); return err })
	resume()
	if !back {
		e.Fatalf("Flush did not return %s after its context had ended", e.grace())
	}
	if err == nil {
		e.Errorf("Flush returned nil although the broker answered nothing")
	}
}
