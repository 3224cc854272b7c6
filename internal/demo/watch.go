package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/container"
)

// framesPerSecond is how often the state is shown.
const framesPerSecond = 5

// watch takes samples and shows them until ctx ends.
func (r *run) watch(ctx context.Context) {
	all := r.all()
	meters := make([]meter, len(all))
	tick := time.NewTicker(time.Second / framesPerSecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			rows := make([]Row, len(all))
			for i, l := range all {
				rows[i] = meters[i].row(l, now, r.cfg.For)
			}
			at := now.Sub(r.began)
			r.show(func(s Show) { s.Frame(at, rows) })
		}
	}
}

// meter turns counters into a rate and keeps the history of the workers.
type meter struct {
	calls   [framesPerSecond]int // of the last second, a ring
	n       int
	history []int
	sampled time.Time
}

const historySize = 12

func (m *meter) row(l *leg, now time.Time, whole time.Duration) Row {
	st := l.box.Stats()
	calls := int(st.Acked + st.Retried + st.Rejected)
	before := m.calls[m.n%len(m.calls)]
	m.calls[m.n%len(m.calls)] = calls
	m.n++
	if now.Sub(m.sampled) >= whole/historySize {
		m.sampled = now
		m.history = append(m.history, st.Workers)
		m.history = m.history[max(len(m.history)-historySize, 0):]
	}
	dead := int64(0)
	for _, n := range st.DeadLetters {
		dead += n
	}
	row := Row{Broker: l.rig.name, Rate: calls - before, Backlog: l.backlog(), Running: st.Busy,
		Workers: st.Workers, Max: st.Max, History: append([]int(nil), m.history...),
		Retried: int(st.Retried), Dead: int(dead), State: string(st.State)}
	if in, ok := l.recovering(now); ok && st.State == container.StateRecovering {
		row.State += fmt.Sprintf(", next try in %.1f s", in.Seconds())
		row.Trouble = true
	}
	if st.Permits >= 0 {
		row.State += ", throttled"
	}
	return row
}
