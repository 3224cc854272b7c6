package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/longshore-go/longshore/internal/history"
)

// fresh is for how long a snapshot may stand without a refresh.
const fresh = 700 * time.Millisecond

// tick takes the sample of the second and sends changes to the viewers, if there are any.
func (f *feed) tick(now time.Time) {
	watched := f.hub.watched()
	f.mu.Lock()
	defer f.mu.Unlock()
	sample := now.Unix() != f.sampled
	if !sample && !watched {
		return
	}
	points := f.refresh(now, watched, sample)
	if !watched {
		return
	}
	if sample { // also without containers: it is the sign of life
		raw := sse("points", 0, map[string]any{"instance": f.containers.instance, "points": points})
		f.hub.status(frame{raw, raw})
	}
}

// point is one container in one second.
type point struct {
	Container string `json:"container"`
	history.Point
}

// refresh reads each container once: for the history if it is time, for the viewers if
// there are any. The caller holds mu.
func (f *feed) refresh(now time.Time, watched, sample bool) (points []point) {
	points = []point{}
	if sample {
		f.sampled = now.Unix()
	}
	if f.entries == nil {
		f.entries = make([]frame, len(f.containers.list))
	}
	var changed []frame
	for i, c := range f.containers.list {
		st := c.Stats()
		if sample {
			if p, ok := c.past.Add(now, &st); ok && watched {
				points = append(points, point{st.Name, p})
			}
		}
		if !watched {
			c.meter.rate(&st, now)
			continue
		}
		if e := entryOf(f.containers.statusOf(c, &st, now)); !bytes.Equal(e.full, f.entries[i].full) {
			f.entries[i] = e
			changed = append(changed, e)
		}
	}
	if watched {
		f.at = now
	}
	if len(changed) > 0 {
		f.hub.status(frame{f.statusEvent(changed, true), f.statusEvent(changed, false)})
	}
	return points
}

// entryOf is a container as JSON.
func entryOf(v Container) frame {
	full, _ := json.Marshal(v) // strings and numbers
	bare, _ := json.Marshal(v.Bare())
	return frame{full, bare}
}

// statusEvent is an event with the containers that changed.
func (f *feed) statusEvent(list []frame, all bool) []byte {
	return sse("status", 0, struct {
		Instance   string          `json:"instance"`
		Containers json.RawMessage `json:"containers"`
	}{f.containers.instance, joined(list, all)})
}

// joined is a JSON array of containers that were marshalled before.
func joined(list []frame, all bool) json.RawMessage {
	raw := []byte{'['}
	for i, e := range list {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, e.of(all)...)
	}
	return append(raw, ']')
}

// snapshot is the first event of a stream: the caller's session and the state of everything.
func (f *feed) snapshot(ctx context.Context) []byte {
	hello := f.greet(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.at) > fresh {
		f.refresh(now, true, false)
	}
	return sse("snapshot", 0, struct {
		greeting
		Containers json.RawMessage `json:"containers"`
	}{hello, joined(f.entries, sees(ctx))})
}
