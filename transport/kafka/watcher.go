package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// watcher looks after what the client does not report. The client never gives up reaching
// its cluster: the watcher ends the consumer when no broker has answered for a while, so that
// its container knows, shows it, and opens it again when the cluster is back. It also
// reports silent leaders and blocked partitions. It runs on one goroutine.
type watcher struct {
	src         *Group            // for names
	cl          *kgo.Client       // asks what the poller cannot see
	life        *lifetime         // ended when no broker has answered for silentAfter
	link        *link             // when a broker was heard last
	assignments *assignments      // whose leaders are watched
	health      *topicHealth      // looked after at each turn
	reports     *reports          // leaders that are silent, and that answer again
	broadcast   *broadcast        // looks for new partitions; nil for a group
	open        *openTransactions // that hold partitions back

	asked time.Time // when leaders were last asked; run's own

	mu     sync.Mutex             // guards what follows
	silent map[*partition]silence // whose leaders do not answer
}

const (
	watchEvery  = time.Second
	quietAfter  = 5 * time.Second  // without an answer for so long the watcher asks
	silentAfter = 10 * time.Second // and without one by then the cluster, or the leader, is away
)

// run watches until the consumer ends.
func (w *watcher) run() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.life.over.Done():
			return
		}
		quiet := w.link.silence() > quietAfter
		if quiet {
			w.probe()
		}
		w.checkLeaders()
		w.checkSession()
		w.health.look(!quiet)
		if w.broadcast != nil {
			w.broadcast.look()
		}
		now := time.Now()
		if !quiet {
			w.open.look(w.life.over, w.assignments.all(), now)
		}
		for _, p := range w.assignments.all() {
			if err := p.ended(); err != nil {
				w.life.fail(err)
			}
			p.warn(now)
			p.checkAgain()
		}
	}
}

// checkSession ends a consumer whose group has not heard of it for so long that others have
// its partitions. The client does that for a classic group; in a KIP-848 group it reads on
// for as long as the coordinator is out of reach (franz-go v1.22.3).
func (w *watcher) checkSession() {
	last := w.link.beat.Load()
	cfg := &w.src.cfg
	if cfg.Protocol != Consumer || last == nil {
		return
	}
	quiet := time.Since(*last)
	if quiet < max(or(cfg.SessionTimeout, defaultSession), cfg.rebalance()) {
		return
	}
	w.life.fail(&longshore.Error{Code: longshore.CodeUnreachable, Op: w.src.title() + " at " + w.src.b.address(), Source: w.src.name(),
		Err:  fmt.Errorf("the group's coordinator has not answered for %s: the session is over", quiet.Round(time.Second)),
		Hint: "look at the broker that coordinates the group, or at the network to it"})
}

// probe asks any broker. That there is an answer is enough.
func (w *watcher) probe() {
	ctx, cancel := context.WithTimeout(w.life.over, quietAfter)
	defer cancel()
	err := cluster.Probe(ctx, w.cl)
	if err == nil || w.life.over.Err() != nil {
		return
	}
	if quiet := w.link.silence(); quiet > silentAfter {
		if d := w.link.refused.Load(); d != nil {
			err = *d
		}
		w.life.fail(&longshore.Error{Code: longshore.CodeUnreachable, Op: w.src.title() + " at " + w.src.b.address(), Source: w.src.name(),
			Err:  fmt.Errorf("no broker has answered for %s: %w", quiet.Round(time.Second), shortDial(err)),
			Hint: "start a broker, or check the network"})
	}
}
