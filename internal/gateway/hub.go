package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	keepEvents = 1000
	viewerRoom = 256
)

// frame is a part of the stream as it is written: bare for those without a token.
type frame struct {
	id         int64 // of an event, else 0
	full, bare []byte
}

// viewer is an open stream. Its channel is closed when it does not keep up.
type viewer struct{ ch chan frame }

// known is what an instance said last.
type known struct {
	session    object
	error      string // why it does not answer
	since      time.Time
	containers map[string]object
	jobs       map[string]object
}

// hub knows how everything stands and hands out what changes, once for all viewers.
type hub struct {
	mu        sync.Mutex
	names     []string // in the order of the command line
	instances map[string]*known
	events    []frame
	next      int64
	viewers   map[*viewer]struct{}
}

func newHub(names []string) *hub {
	// Ids go on growing over a restart, so that a stream that resumes misses nothing.
	h := &hub{names: names, instances: map[string]*known{}, next: time.Now().UnixMilli(), viewers: map[*viewer]struct{}{}}
	for _, n := range names {
		h.instances[n] = &known{session: object{}, containers: map[string]object{}, jobs: map[string]object{}}
	}
	return h
}

// hear takes a part of an instance's stream.
func (h *hub) hear(instance, kind string, data []byte) {
	v, ok := decode(data)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.instances[instance]
	if k == nil {
		return
	}
	switch kind {
	case "snapshot":
		h.snapshotOf(instance, k, v)
	case "status":
		named(v, instance)
		for _, c := range objects(v, "containers") {
			k.containers[text(c, "name")] = c
		}
		h.send("status", v)
	case "points":
		named(v, instance)
		h.send("points", v)
	case "job":
		v["instance"] = instance
		k.jobs[text(v, "id")] = v
		h.send("job", v)
	case "event":
		v["instance"] = instance
		h.event(v)
	}
}

// snapshotOf takes how an instance stands when its stream begins. The caller holds mu.
func (h *hub) snapshotOf(instance string, k *known, v object) {
	named(v, instance)
	was := text(k.session, "started")
	k.session, k.error = only(v, "started", "version"), ""
	if was != "" && was != text(k.session, "started") {
		k.session["restarted"] = time.Now().UnixMilli()
	}
	k.containers, k.jobs = map[string]object{}, map[string]object{}
	for _, c := range objects(v, "containers") {
		k.containers[text(c, "name")] = c
	}
	h.tell(instance, k)
	for _, j := range objects(v, "jobs") {
		k.jobs[text(j, "id")] = j
		h.send("job", j)
	}
}

// silent marks an instance that does not answer, and the known facts about it as old.
func (h *hub) silent(instance, problem string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.instances[instance]; k != nil && k.error != problem {
		k.error, k.since = problem, since
		h.tell(instance, k)
	}
}

// answers marks an instance that answers again.
func (h *hub) answers(instance string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.instances[instance]; k != nil && k.error != "" {
		k.error = ""
		h.tell(instance, k)
	}
}

// tell hands out how an instance stands. The caller holds mu.
func (h *hub) tell(instance string, k *known) {
	h.send("instance", k.about(instance))
	h.send("status", object{"instance": instance, "containers": k.shown(instance)})
}

// about is the instance for viewers.
func (k *known) about(instance string) object {
	v := maps.Clone(k.session)
	v["instance"], v["error"] = instance, k.error
	return v
}

// shown are the containers for viewers: those of an instance that does not answer say so.
func (k *known) shown(instance string) []object {
	items := list(k.containers)
	if k.error == "" {
		return items
	}
	sentence := fmt.Sprintf("%s does not answer since %s, and these numbers are old: %s", instance, k.since.Format(time.TimeOnly), k.error)
	for i := range items {
		c := maps.Clone(items[i])
		c["level"], c["ready"], c["reason"], c["limited"] = "problem", false, sentence, object{"by": "instance", "text": sentence, "since": k.since}
		items[i] = c
	}
	return items
}

// list returns objects in the order of their names.
func list(of map[string]object) []object {
	items := []object{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		items = append(items, of[name])
	}
	return items
}

func text(v object, name string) string {
	s, _ := v[name].(string)
	return s
}

// event gives an event an id of ours and keeps it. The caller holds mu.
func (h *hub) event(v object) {
	h.next++
	v["id"] = h.next
	f := frame{h.next, sse("event", h.next, v), sse("event", h.next, bare("event", v))}
	if len(h.events) == keepEvents {
		h.events = append(h.events[:0], h.events[keepEvents/10:]...)
	}
	h.events = append(h.events, f)
	h.hand(f)
}

// send hands out what has no id. The caller holds mu.
func (h *hub) send(kind string, v object) {
	if len(h.viewers) > 0 {
		h.hand(frame{0, sse(kind, 0, v), sse(kind, 0, bare(kind, v))})
	}
}

func (h *hub) hand(f frame) {
	for v := range h.viewers {
		select {
		case v.ch <- f:
		default: // it begins again with a snapshot
			delete(h.viewers, v)
			close(v.ch)
		}
	}
}

// watch opens a stream: how everything stands, and what came after an event.
func (h *hub) watch(session object, after int64, sees bool) (first []byte, past []frame, v *viewer, stop func()) { //nolint:revive // the stream and its beginning, under one lock
	h.mu.Lock()
	defer h.mu.Unlock()
	first = sse("snapshot", 0, h.all(session, sees))
	for _, f := range h.events {
		if f.id > after {
			past = append(past, f)
		}
	}
	v = &viewer{ch: make(chan frame, viewerRoom)}
	h.viewers[v] = struct{}{}
	return first, past, v, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.viewers, v)
	}
}

// all is how everything stands. The caller holds mu.
func (h *hub) all(session object, sees bool) object {
	v := maps.Clone(session)
	instances, containers, jobs := []object{}, []object{}, []object{}
	for _, n := range h.names {
		k := h.instances[n]
		instances = append(instances, k.about(n))
		containers = append(containers, k.shown(n)...)
		jobs = append(jobs, list(k.jobs)...)
	}
	if !sees {
		instances, containers, jobs = bareList("instance", instances), bareList("container", containers), bareList("job", jobs)
	}
	v["instances"], v["containers"], v["jobs"], v["actions"] = instances, containers, jobs, []any{}
	return v
}

func sse(kind string, id int64, v object) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // it was JSON before
	}
	if id > 0 {
		return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", id, kind, raw)
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, raw)
}
