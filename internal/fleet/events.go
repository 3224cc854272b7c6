package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/history"
)

const (
	keepEvents = 200
	// quiet is how long a stream may bring nothing: an instance sends a sign of life every
	// ten seconds.
	quiet = 30 * time.Second
	// seedFor is how many seconds of the past are read of all containers; of one that is
	// looked at more are.
	seedFor = 120
	// The pauses between two attempts to open the stream.
	firstPause, lastPause = time.Second, 3 * time.Second
)

// follow reads the stream of events until ctx ends, and opens it again after its end.
func (r *reader) follow(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		if r.stream(ctx) {
			pause = firstPause
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
		pause = min(2*pause, lastPause)
	}
}

// stream reads one stream to its end and reports whether it brought anything.
func (r *reader) stream(ctx context.Context) (opened bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := time.AfterFunc(quiet, cancel)
	defer watch.Stop()
	r.mu.Lock()
	path, lastID := "/api/events?after=0", "" // what it still has of the past
	if r.lastID > 0 {
		path, lastID = "/api/events", strconv.FormatInt(r.lastID, 10)
	}
	r.mu.Unlock()
	_ = r.Stream(ctx, path, lastID, func(kind string, data []byte) error { // follow opens it again, and run reports an instance that does not answer
		opened = true
		watch.Reset(quiet)
		if r.cfg.Frames != nil {
			r.cfg.Frames(r.target.Name, kind, data)
		}
		var e admin.Event
		var who admin.Session
		switch {
		case kind == "event" && json.Unmarshal(data, &e) == nil:
			r.noteEvent(e)
		case kind == "snapshot" && json.Unmarshal(data, &who) == nil:
			r.noteSession(who)
			r.seed(ctx)
		}
		return nil
	})
	return opened
}

// noteSession takes who is at the other end.
func (r *reader) noteSession(who admin.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := &r.known
	if !k.Session.Started.IsZero() && !who.Started.Equal(k.Session.Started) {
		r.begin(time.Now())
	}
	k.Session = who
}

// seed reads the past of all containers, for the first pictures.
func (r *reader) seed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	var past struct {
		Containers []history.Series `json:"containers"`
	}
	if r.Call(ctx, http.MethodGet, fmt.Sprintf("/api/history?seconds=%d", seedFor), nil, &past) != nil {
		return // of an older version, or gone again
	}
	r.notePast(past.Containers)
}

func (r *reader) notePast(list []history.Series) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		if s := r.series[list[i].Container]; s != nil {
			s.before(pointsOf(&list[i]))
		} else {
			r.series[list[i].Container] = &series{points: pointsOf(&list[i])}
		}
	}
}

func (r *reader) noteEvent(e admin.Event) {
	r.mu.Lock()
	if e.ID > r.lastID {
		r.lastID = e.ID
		if len(r.known.Events) == keepEvents {
			r.known.Events = append(r.known.Events[:0:0], r.known.Events[1:]...)
		}
		r.known.Events = append(r.known.Events, e)
	}
	r.mu.Unlock()
	r.signal()
}
