package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
)

// Case is the examined state.
type Case struct {
	// Rows lists mutex rows: (*mutex.Mutex).Rows.
	Rows func(ctx context.Context, age time.Duration, limit int, ids ...string) ([]mutex.Row, error)
	// Dead and Queue are where messages may be; nil is not looked at.
	Dead, Queue transport.Browser
	// Headers are the names of the header with the id.
	Headers []string
	// Older leaves out rows that are younger: in flight.
	Older time.Duration
	// Limit bounds how many rows are read, and how many messages in each place.
	Limit int
	// IDs examines only these.
	IDs []string
	// Again is the pause before everything is looked at a second time; only what was
	// found the same twice is reported. 0: once.
	Again time.Duration
}

// Found is a diagnosis with the known facts about the row.
type Found struct {
	mutex.Finding

	Age    time.Duration
	Holder string
}

// Report is the result.
type Report struct {
	Found []Found
	// Unknown says why a place could not be looked into.
	Unknown []string
	// Changed is how many ids looked different the second time.
	Changed int
}

// Examine looks, twice if asked to. The order of the looks is dead-letter queue, queue,
// rows: a message moves the other way.
func Examine(ctx context.Context, c Case) (Report, error) {
	first, err := look(ctx, c)
	if err != nil || c.Again <= 0 || len(first.Found) == 0 {
		return first, err
	}
	t := time.NewTimer(c.Again)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return Report{}, context.Cause(ctx)
	}
	second, err := look(ctx, c)
	if err != nil {
		return Report{}, err
	}
	was := map[string]mutex.Lookup{}
	for _, f := range first.Found {
		was[f.ID] = f.Lookup
	}
	all := second.Found
	second.Found = slices.DeleteFunc(slices.Clone(all), func(f Found) bool { return was[f.ID] != f.Lookup })
	second.Changed = len(all) - len(second.Found)
	return second, nil
}

func look(ctx context.Context, c Case) (Report, error) {
	var r Report
	dead, err := c.ids(ctx, &r, "dead-letter queue", c.Dead)
	if err != nil {
		return r, err
	}
	queue, err := c.ids(ctx, &r, "queue", c.Queue)
	if err != nil {
		return r, err
	}
	rows, err := c.rows(ctx, dead, queue)
	if err != nil {
		return r, err
	}
	for _, id := range c.union(rows, dead, queue) {
		in := mutex.Lookup{ID: id, Row: mutex.No, DeadLetter: dead.has(id), Queue: queue.has(id)}
		f := Found{}
		if row, ok := rows[id]; ok {
			in.Row, in.Locked, in.Outbox = mutex.Yes, row.Locked, row.Outbox
			f.Age, f.Holder = row.Age, row.Holder
		}
		f.Finding = mutex.Diagnose(in)
		if f.State != mutex.StateNothing || len(c.IDs) > 0 {
			r.Found = append(r.Found, f)
		}
	}
	return r, nil
}

// rows are the old ones, and those of the messages that were found.
func (c *Case) rows(ctx context.Context, places ...*place) (map[string]mutex.Row, error) {
	found := map[string]mutex.Row{}
	add := func(ids ...string) error {
		rows, err := c.Rows(ctx, c.Older, max(c.Limit, len(ids)), ids...)
		for _, r := range rows {
			found[r.ID] = r
		}
		return err
	}
	if len(c.IDs) > 0 {
		return found, add(c.IDs...)
	}
	if err := add(); err != nil {
		return nil, err
	}
	var ids []string
	for _, p := range places {
		ids = append(ids, p.list()...)
	}
	for part := range slices.Chunk(ids, 500) {
		if err := add(part...); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (c *Case) union(rows map[string]mutex.Row, places ...*place) []string {
	if len(c.IDs) > 0 {
		return c.IDs
	}
	var ids []string
	for id := range rows {
		ids = append(ids, id)
	}
	for _, p := range places {
		ids = append(ids, p.list()...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// place is what a queue holds; nil is unknown.
type place struct {
	ids  map[string]bool
	more bool // not all was read
}

func (p *place) has(id string) mutex.Found {
	switch {
	case p == nil:
		return mutex.Unknown
	case p.ids[id]:
		return mutex.Yes
	case p.more:
		return mutex.Unknown
	}
	return mutex.No
}

func (p *place) list() []string {
	if p == nil {
		return nil
	}
	ids := make([]string, 0, len(p.ids))
	for id := range p.ids {
		ids = append(ids, id)
	}
	return ids
}

func (c *Case) ids(ctx context.Context, r *Report, name string, b transport.Browser) (*place, error) {
	if b == nil {
		return nil, nil //nolint:nilnil // unknown is an answer
	}
	done, err := doneIn(ctx, b)
	if err != nil {
		return nil, err
	}
	p := &place{ids: map[string]bool{}}
	for next, n := "", 0; ; {
		page, after, err := b.Browse(ctx, next, c.Limit-n)
		if errors.Is(err, longshore.CodeUnsupported) {
			r.Unknown = append(r.Unknown, name+": "+strings.TrimPrefix(err.Error(), "longshore: "))
			return nil, nil //nolint:nilnil // unknown is an answer
		}
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			if done(d) {
				continue
			}
			n++
			if id := IDOf(d, c.Headers); id != "" {
				p.ids[id] = true
			}
		}
		next = after
		if next == "" || len(page) == 0 {
			return p, nil
		}
		if n >= c.Limit {
			p.more = true
			return p, nil
		}
	}
}

func doneIn(ctx context.Context, b transport.Browser) (func(*longshore.Delivery) bool, error) {
	if l, ok := b.(transport.ProgressReader); ok {
		return l.Done(ctx)
	}
	return func(*longshore.Delivery) bool { return false }, nil
}

// IDOf is the mutex id of a message, "" without one.
func IDOf(d *longshore.Delivery, headers []string) string {
	for _, name := range headers {
		if id := d.Headers.String(name); id != "" {
			return id
		}
	}
	return ""
}
