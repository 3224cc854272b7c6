package admin

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/keytext"
	"github.com/longshore-go/longshore/transport"
)

// Detail is what a container holds and why, for viewers.
type Detail struct {
	Instance  string `json:"instance"`
	Container string `json:"container"`
	Source    Source `json:"source"`
	// DeadLetterTo is where it publishes dead letters; "" where the broker has them.
	DeadLetterTo string `json:"dead_letter_to,omitempty"`
	// Total is how many it holds, Records the first of them: what runs, then what is parked.
	Total   int      `json:"total"`
	Records []Record `json:"records"`
	// Keys are the keys with the most work here.
	Keys []Key `json:"keys"`
	// Partitions are those of this instance, those that are held back first.
	Partitions []Partition `json:"partitions"`
	// Consumers are the consumers of the source; null where the broker has no such list.
	Consumers *Consumers `json:"consumers"`
	// Errors are those of the last 15 minutes by code.
	Errors []Trouble `json:"errors"`
}

// Source is where a container consumes.
type Source struct {
	Transport string `json:"transport"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Address   string `json:"address,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Bindings say how messages come to it, as far as the configuration declares that.
	Bindings string `json:"bindings,omitempty"`
}

// Key is what a container holds of one key.
type Key struct {
	Key string `json:"key"`
	// Waiting is how many wait behind its first one, Share their part of the window.
	Waiting int     `json:"waiting"`
	Share   float64 `json:"share"`
	// State, Record, Attempt, Age and Due are those of its first one.
	State   container.HeldState `json:"state,omitempty"`
	Record  string              `json:"record,omitempty"`
	Attempt int                 `json:"attempt,omitempty"`
	Age     float64             `json:"age"`
	Due     time.Time           `json:"due,omitzero"`
}

// Partition is one of this instance's, and the record that holds it back.
type Partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// Next is the offset that is handed out next, End that after the newest record, Committed
	// where the next owner goes on, Lag what lies between that and the end; -1: not known.
	Next      int64 `json:"next"`
	End       int64 `json:"end"`
	Committed int64 `json:"committed"`
	Lag       int64 `json:"lag"`
	// Position and Key are those of the record that holds it back, Since since when; without
	// Since none does.
	Position uint64    `json:"position,omitempty"`
	Key      string    `json:"key,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Behind is how many are done or in work beyond that record, Window how many there may
	// be; Full: the partition stands still.
	Behind int  `json:"behind"`
	Window int  `json:"window"`
	Full   bool `json:"full"`
	// Record, State, Attempt and Due are those of the record, where it is held here.
	Record  string              `json:"record,omitempty"`
	State   container.HeldState `json:"state,omitempty"`
	Attempt int                 `json:"attempt,omitempty"`
	Due     time.Time           `json:"due,omitzero"`
}

const (
	detailFor   = time.Second     // how long a detail is kept for all viewers
	stacksFor   = 5 * time.Second // reading stacks stops the process for a moment
	detailHeld  = 2000            // records that are looked at
	detailShown = 50              // of those that run, and of those that are parked
	detailKeys  = 20
	detailParts = 200
	showStack   = 8 * time.Second // age of a call from which its place is shown
)

// details keeps the last detail of a container, so that many viewers cost as one.
type details struct {
	mu     sync.Mutex
	at     time.Time
	last   Detail
	stacks map[string]string // the place in the code of old calls, by record
	looked time.Time
}

func (cs *containers) detail(w http.ResponseWriter, r *http.Request) {
	c := cs.find(w, r)
	if c == nil {
		return
	}
	d := c.details.get(r.Context(), c, cs.instance)
	if roleOf(r.Context()) < operator { // stacks are for operators
		d.Records = slices.Clone(d.Records)
		for i := range d.Records {
			d.Records[i].At = ""
		}
	}
	answer(w, http.StatusOK, d)
}

func (d *details) get(ctx context.Context, c *served, instance string) Detail {
	progress, consumers := c.broker.look(ctx, c.ListenerContainer) // before the lock: it may take a moment
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if now.Sub(d.at) < detailFor {
		return d.last
	}
	st := c.Stats()
	held, total := c.InFlight(detailHeld)
	v := Detail{Instance: instance, Container: c.Name(), Source: sourceOf(c.ListenerContainer), Total: total, Errors: c.troubles.list(now), Keys: keysOf(held, st.Window), Partitions: partitionsOf(progress, &st, held), Consumers: consumers}
	if _, to := c.DeadLetterRoute(); to != "" {
		v.DeadLetterTo = to[strings.LastIndexByte(to, 0)+1:]
	}
	v.Records = d.records(c.ListenerContainer, held, now)
	d.at, d.last = now, v
	return v
}

// records are those that run and those that are parked, with the place of old calls.
func (d *details) records(c *container.ListenerContainer, held []container.Held, now time.Time) []Record {
	list := []Record{}
	running, parked, old := 0, 0, false
	for i := range held {
		switch h := &held[i]; h.State {
		case container.HeldRunning, container.HeldStuck:
			if running++; running <= detailShown {
				list = append(list, recordOf(*h))
				old = old || h.Age >= showStack
			}
		case container.HeldParked, container.HeldMoving:
			if parked++; parked <= detailShown {
				list = append(list, recordOf(*h))
			}
		case container.HeldReady, container.HeldBehind:
		}
	}
	if !old {
		d.stacks = nil
		return list
	}
	if now.Sub(d.looked) >= stacksFor {
		d.looked, d.stacks = now, map[string]string{}
		for _, h := range c.Stuck() {
			d.stacks[h.Record] = placeInStack(h.Stack)
		}
	}
	for i := range list {
		list[i].At = d.stacks[list[i].Record]
	}
	return list
}

// placeInStack is the first call of a stack that is neither the runtime's nor that of a
// standard package: where the handler waits.
func placeInStack(stack string) string {
	lines := strings.Split(stack, "\n")
	first := ""
	for i := 0; i+1 < len(lines); i++ {
		where := strings.TrimSpace(lines[i+1])
		if !strings.HasPrefix(lines[i+1], "\t") || strings.HasPrefix(lines[i], "created by ") {
			continue
		}
		where, _, _ = strings.Cut(where, " +0x")
		name, _, _ := strings.Cut(lines[i], "(")
		text := name[strings.LastIndexByte(name, '/')+1:] + " " + where[strings.LastIndexByte(where, '/')+1:]
		if first == "" {
			first = text
		}
		if strings.Contains(name, "/") && strings.Contains(name[:strings.Index(name, "/")], ".") { // a module's, not the standard library's
			return text
		}
		if strings.HasPrefix(name, "main.") {
			return text
		}
	}
	return first
}

func sourceOf(c *container.ListenerContainer) Source {
	about, ok := c.Source().(transport.Describer)
	if !ok {
		return Source{Name: "source"}
	}
	d := about.Describe()
	return Source{Transport: d.Transport, Kind: d.Kind, Name: d.Name, Address: d.Address, Namespace: d.Namespace, Bindings: d.Bindings}
}

// keysOf are the keys with the most work among what is held.
func keysOf(held []container.Held, window int) []Key {
	of := map[string]*Key{}
	for i := range held {
		h := &held[i]
		if h.Key == "" {
			continue
		}
		k := of[h.Key]
		if k == nil {
			k = &Key{Key: h.Key, State: h.State, Record: h.Record, Attempt: h.Attempt, Age: h.Age.Seconds(), Due: h.Due}
			of[h.Key] = k
			continue
		}
		k.Waiting++
	}
	list := []Key{}
	for _, k := range of {
		if k.Waiting > 0 {
			k.Share = float64(k.Waiting+1) / float64(max(window, k.Waiting+1))
			list = append(list, *k)
		}
	}
	slices.SortFunc(list, func(a, b Key) int { return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Key, b.Key)) })
	return list[:min(len(list), detailKeys)]
}

// partitionsOf joins how far each partition is with the record that holds it back.
func partitionsOf(progress []transport.PartitionProgress, st *container.Stats, held []container.Held) []Partition {
	type place struct {
		topic string
		num   int32
	}
	of := map[place]Partition{}
	for _, p := range progress {
		of[place{p.Topic, p.Partition}] = Partition{Topic: p.Topic, Partition: p.Partition, Next: p.Position, End: p.End, Committed: p.Committed, Lag: p.Lag()}
	}
	for i := range st.BlockedPartitions {
		b := &st.BlockedPartitions[i]
		p, known := of[place{b.Topic, b.Partition}]
		if !known {
			p = Partition{Topic: b.Topic, Partition: b.Partition, Next: -1, End: -1, Committed: -1, Lag: -1}
		}
		p.Position, p.Key, p.Since, p.Behind, p.Window, p.Full = b.Position, keytext.Of(b.Key), b.Since, b.Behind, b.Window, b.Full()
		for j := range held {
			if h := &held[j]; h.Topic == b.Topic && h.Partition == b.Partition && h.Position == b.Position {
				p.Record, p.State, p.Attempt, p.Due = h.Record, h.State, h.Attempt, h.Due
			}
		}
		of[place{b.Topic, b.Partition}] = p
	}
	list := slices.SortedFunc(maps.Values(of), func(a, b Partition) int {
		return cmp.Or(cmp.Compare(free(a), free(b)), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return append([]Partition{}, list[:min(len(list), detailParts)]...)
}

// free is 1 for a partition that nothing holds back, which comes after the others.
func free(p Partition) int {
	if p.Since.IsZero() {
		return 1
	}
	return 0
}
