package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/longshore-go/longshore/internal/history"
)

// live is what viewers see now, as JSON that is made once for all of them.
type live struct {
	mu      sync.Mutex
	at      time.Time // of the last refresh
	entries []liveEntry
	sampled int64 // the second of the last sample
}

// liveEntry is one container as it was written last.
type liveEntry struct{ full, bare []byte }

// fresh is for how long a snapshot may stand without a refresh.
const fresh = 700 * time.Millisecond

// tick takes the sample of the second, and hands out what changed while somebody looks.
func (s *Server) tick(now time.Time) {
	watched := s.hub.watched()
	s.now.mu.Lock()
	defer s.now.mu.Unlock()
	sample := now.Unix() != s.now.sampled
	if !sample && !watched {
		return
	}
	points := s.now.refresh(s, now, watched, sample)
	if !watched {
		return
	}
	if sample { // also without containers: it is the sign of life
		raw := sse("points", 0, map[string]any{"instance": s.instance, "points": points})
		s.hub.status(frame{raw, raw})
	}
}

// point is one container in one second.
type point struct {
	Container string `json:"container"`
	history.Point
}

// refresh reads each container once: for the history if it is time, for the viewers if
// there are any. The caller holds mu.
func (l *live) refresh(s *Server, now time.Time, watched, sample bool) (points []point) {
	points = []point{}
	if sample {
		l.sampled = now.Unix()
	}
	if l.entries == nil {
		l.entries = make([]liveEntry, len(s.cfg.Containers))
	}
	var full, bare [][]byte
	for i, c := range s.cfg.Containers {
		st := c.Stats()
		s.meters[st.Name].rate(&st, now)
		if sample {
			if p, ok := s.past[st.Name].Add(now, &st); ok && watched {
				points = append(points, point{st.Name, p})
			}
		}
		if !watched {
			continue
		}
		v := s.statusOf(c, &st, now)
		if e := entryOf(&v); !bytes.Equal(e.full, l.entries[i].full) {
			l.entries[i] = e
			full, bare = append(full, e.full), append(bare, e.bare)
		}
	}
	if watched {
		l.at = now
	}
	if len(full) > 0 {
		s.hub.status(frame{s.containersFrame("status", full), s.containersFrame("status", bare)})
	}
	return points
}

func entryOf(v *Container) liveEntry {
	full, _ := json.Marshal(v) // strings and numbers
	bare, _ := json.Marshal(v.Bare())
	return liveEntry{full, bare}
}

// containersFrame is an event with containers that were marshalled before.
func (s *Server) containersFrame(kind string, list [][]byte) []byte {
	return sse(kind, 0, struct {
		Instance   string          `json:"instance"`
		Containers json.RawMessage `json:"containers"`
	}{s.instance, joined(list)})
}

func joined(list [][]byte) json.RawMessage {
	return append(append([]byte{'['}, bytes.Join(list, []byte{','})...), ']')
}

// snapshot is the first event of a stream: who is here and how everything stands.
func (l *live) snapshot(ctx context.Context, s *Server) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.at) > fresh {
		l.refresh(s, now, true, false)
	}
	list := make([][]byte, 0, len(l.entries))
	for _, e := range l.entries {
		list = append(list, frame(e).of(sees(ctx)))
	}
	return sse("snapshot", 0, struct {
		Session
		Containers json.RawMessage `json:"containers"`
		Jobs       []Job           `json:"jobs"`
		Actions    []Action        `json:"actions"`
	}{s.session(ctx), joined(list), s.jobsFor(ctx), s.cfg.Actions})
}

// jobsFor are the jobs as a caller may see them.
func (s *Server) jobsFor(ctx context.Context) []Job {
	list := s.jobs.all()
	if !sees(ctx) {
		for i := range list {
			list[i] = list[i].Bare()
		}
	}
	return list
}
