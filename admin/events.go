package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/history"
)

// Event is one line of the stream.
type Event struct {
	ID        int64     `json:"id"`
	Time      time.Time `json:"time"`
	Instance  string    `json:"instance,omitempty"`
	Container string    `json:"container"`
	// Kind is a container.EventKind, or "operator" for a change by a person here.
	Kind   string `json:"kind"`
	Text   string `json:"text,omitempty"`
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	// Error is the text of what went wrong.
	Error string `json:"error,omitempty"`
	By    string `json:"by,omitempty"`
	// MessageID and Key are of the delivery it is about.
	MessageID string `json:"message_id,omitempty"`
	Key       string `json:"key,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	// From and To are the counts of workers of a "scaled".
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`
}

const (
	statusTick = 500 * time.Millisecond
	aliveEvery = 10 * time.Second // a sign of life, so that a dead client is noticed
)

// feed follows the containers and streams what happens and what changes to all viewers.
type feed struct {
	containers *containers
	hub        *hub
	// greet is what a snapshot has besides the containers; it depends on the caller.
	greet func(context.Context) greeting
	// stillMay tells whether the caller of a stream has the role with which it began.
	stillMay func(*http.Request) bool
	streams  chan struct{} // a place for each stream of events

	mu      sync.Mutex // guards the rest: what viewers see now, as JSON made once for all of them
	at      time.Time  // of the last refresh
	entries []frame    // each container as it was written last
	sampled int64      // the second of the last sample
}

// greeting is what a snapshot has besides the containers.
type greeting struct {
	Session

	Jobs    []Job    `json:"jobs"`
	Actions []Action `json:"actions"`
}

// watch collects the containers' events, takes one sample a second of each, and hands out
// what changed while there are viewers: once for all of them.
func (f *feed) watch(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range f.containers.list {
		wg.Go(func() { f.hear(ctx, c) })
	}
	tick := time.NewTicker(statusTick)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			f.tick(time.Now())
		case <-ctx.Done():
		}
	}
	wg.Wait()
}

// hear follows the events of one container.
func (f *feed) hear(ctx context.Context, c *served) {
	events, stop := c.Events(streamBuf)
	defer stop()
	for {
		select {
		case e := <-events:
			v := eventOf(e, f.containers.instance)
			f.hub.add(v)
			if e.Kind == container.EventScaled {
				c.past.Mark(history.Mark{At: e.Time, From: e.From, To: e.To, Reason: e.Reason})
			}
			if e.Err != nil {
				c.troubles.note(v)
			}
		case <-ctx.Done():
			return
		}
	}
}

func eventOf(e container.Event, instance string) Event {
	v := Event{Time: e.Time, Instance: instance, Container: e.Container, Kind: string(e.Kind), Text: e.Text, Reason: e.Reason, From: e.From, To: e.To}
	if e.Err != nil {
		v.Code, v.Error = string(longshore.CodeOf(e.Err)), cutAt(cause(e.Err), errorText)
	}
	if d := e.Delivery; d != nil {
		v.MessageID, v.Key, v.Attempt = d.MessageID, d.Key, d.Attempt
	}
	return v
}

// errorText bounds the text of an error in an event.
const errorText = 300

// cause is the text of an error without the operation and the message it happened to: the
// event has those.
func cause(err error) string {
	var e *longshore.Error
	if errors.As(err, &e) && e.Err != nil {
		return cause(e.Err)
	}
	return err.Error()
}

// Bare returns the event as it is shown without a token: without ids, keys and the texts that
// may have them.
func (e Event) Bare() Event {
	return Event{ID: e.ID, Time: e.Time, Instance: e.Instance, Container: e.Container, Kind: e.Kind, Code: e.Code, Attempt: e.Attempt, From: e.From, To: e.To}
}

// sse is one event of the stream.
func sse(kind string, id int64, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // not one of ours
	}
	head := ""
	if id > 0 {
		head = "id: " + strconv.FormatInt(id, 10) + "\n"
	}
	return fmt.Appendf(nil, "%sevent: %s\ndata: %s\n\n", head, kind, raw)
}

// events streams: a snapshot, then what changes, at most twice a second, and what
// happens. Last-Event-ID resumes; ?after=0 begins with the events that are kept.
func (f *feed) events(w http.ResponseWriter, r *http.Request) {
	select {
	case f.streams <- struct{}{}:
		defer func() { <-f.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, longshore.CodeState, fmt.Sprintf("%d streams of events are open", maxStreams), "close one, or ask again later")
		return
	}
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Time{}) // a stream has no end; not every writer can say so
	past, ch, stop := f.hub.subscribe(resumesAfter(r))
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	v := viewing{w: w, ctl: ctl, all: sees(r.Context())}
	if !v.write(f.snapshot(r.Context())) {
		return
	}
	for _, e := range past {
		if !v.put(sse("event", e.ID, shownTo(r.Context(), e))) {
			return
		}
	}
	if v.flush() {
		v.follow(r.Context(), ch, func() bool { return f.stillMay(r) })
	}
}

// resumesAfter is the id of the last event that the client has.
func resumesAfter(r *http.Request) int64 {
	for _, text := range []string{r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")} {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			return id
		}
	}
	return math.MaxInt64
}

// viewing writes one stream.
type viewing struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
	all bool // the viewer may see ids, keys and texts
}

// put writes without sending. A reader that reads nothing for so long is cut off.
func (v *viewing) put(raw []byte) bool {
	_ = v.ctl.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := v.w.Write(raw)
	return err == nil
}

func (v *viewing) flush() bool { return v.ctl.Flush() == nil }

func (v *viewing) write(raw []byte) bool { return v.put(raw) && v.flush() }

// follow writes what comes until the client or the server goes, or allowed says no.
func (v *viewing) follow(ctx context.Context, ch <-chan frame, allowed func() bool) {
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case part, ok := <-ch:
			if !ok || !v.put(part.of(v.all)) {
				return
			}
			if len(ch) == 0 && !v.flush() {
				return
			}
		case <-alive.C:
			if !allowed() || !v.write([]byte(": alive\n\n")) {
				return
			}
		}
	}
}
