package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// The client says nothing of a partition whose leader is away or does not answer, and goes
// on trying: it looks like a partition without new records. So a leader that has not
// answered a fetch for a while is asked for the ends of its logs.

// silence is that of a partition's leader.
type silence struct {
	since    time.Time // the first poll without an answer
	reported bool      // so its end is reported too
}

// checkLeaders asks the leaders that have not answered, and reports those that still do not.
func (w *watcher) checkLeaders() {
	ask, asked := map[string][]int32{}, []*partition{}
	pressing := false
	ps := w.assignments.all()
	w.forget(ps)
	for _, p := range ps {
		// Fetches answer for their leaders while they bring something or come back empty in time;
		// then nothing has to be asked.
		switch quiet, ever := w.leaderSilence(p); {
		case !p.active() || w.health.isBroken(p.key.topic):
		case ever && quiet < quietAfter:
			w.leaderAnswered(p)
		default:
			ask[p.key.topic] = append(ask[p.key.topic], p.key.num)
			asked = append(asked, p)
			pressing = pressing || len(w.silentOf([]*partition{p})) > 0
		}
	}
	// Partitions that are known to be silent are looked at each time, so that their recovery is
	// seen soon.
	if len(asked) == 0 || !pressing && time.Since(w.asked) < quietAfter {
		return
	}
	w.asked = time.Now()
	ends, err := cluster.ListOffsets(w.life.over, w.cl, ask, cluster.Newest, w.src.committedOnly())
	if err != nil { // no broker answers at all, which is reported elsewhere
		return
	}
	now := time.Now()
	var silent []*partition
	for _, p := range asked {
		if end, ok := ends[p.key.tp()]; ok {
			p.logEndsAt(end)
			w.leaderAnswered(p)
			continue
		}
		quiet, _ := w.leaderSilence(p)
		if w.leaderSilent(p, now.Add(-max(quiet, now.Sub(w.asked))), now) {
			silent = append(silent, p)
		}
	}
	w.reportSilent(silent, now)
}

// leaderSilence is for how long a partition's leader has not answered; the second is false
// if it never has, or there is none.
func (w *watcher) leaderSilence(p *partition) (time.Duration, bool) {
	leader, _, err := w.cl.PartitionLeader(p.key.topic, p.key.num)
	if err != nil || leader < 0 {
		return 0, false
	}
	return w.link.leaderSilence(leader)
}

// leaderSilent notes that a leader did not answer; true if that is so for long enough to be
// reported.
func (w *watcher) leaderSilent(p *partition, since, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.silent[p]
	if !known {
		s.since = since
	}
	long := now.Sub(s.since) >= silentAfter
	s.reported = s.reported || long
	if w.silent == nil {
		w.silent = map[*partition]silence{}
	}
	w.silent[p] = s
	return long
}

// leaderAnswered ends a silence.
func (w *watcher) leaderAnswered(p *partition) {
	w.mu.Lock()
	s := w.silent[p]
	delete(w.silent, p)
	none := len(w.silent) == 0
	w.mu.Unlock()
	if s.reported && none {
		w.reports.over(conditionLeaders, fmt.Sprintf("%s: the leader of %s answers again, after %s", w.src.title(), p.key, time.Since(s.since).Round(time.Second)))
	}
}

// forget drops the known facts about partitions that have gone.
func (w *watcher) forget(present []*partition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.silent, func(p *partition, _ silence) bool { return !slices.Contains(present, p) })
}

// silentOf returns those of the partitions whose leaders do not answer.
func (w *watcher) silentOf(ps []*partition) (silent []*partition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range ps {
		if _, is := w.silent[p]; is {
			silent = append(silent, p)
		}
	}
	return silent
}

// reportSilent makes one notice of all silent partitions: a broker that is away leads many.
func (w *watcher) reportSilent(ps []*partition, now time.Time) {
	if len(ps) == 0 {
		return
	}
	since := now
	w.mu.Lock()
	for _, p := range ps {
		if s := w.silent[p]; s.since.Before(since) {
			since = s.since
		}
	}
	w.mu.Unlock()
	err := longshoreError(w.src.silentError(ps))
	w.reports.troubled(conditionLeaders, fmt.Sprintf("%s, for %s; %s", err.Text(), now.Sub(since).Round(time.Second), err.Hint), err)
}

// logEndsAt takes the end of the log.
func (p *partition) logEndsAt(end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logEnd = max(p.logEnd, end) // answers may overtake each other
}

const namedMost = 5 // partitions in a text

// silentError names some of the partitions whose leader does not answer.
func (s *Group) silentError(ps []*partition) error {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.key.String()
	}
	slices.Sort(names)
	list := strings.Join(names[:min(len(names), namedMost)], ", ")
	if more := len(names) - namedMost; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return &longshore.Error{Code: longshore.CodeUnreachable, Op: s.title() + ": read " + list, Source: s.name(),
		Err: errors.New("the leader does not answer"), Hint: "nothing is read of them meanwhile; look at that broker, or at the network to it"}
}
