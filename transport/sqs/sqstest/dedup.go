package sqstest

import "time"

const dedupWindow = 5 * time.Minute

// dedup remembers what a FIFO queue accepted in the last five minutes.
type dedup struct {
	known map[string]accepted
	order []known // by time
}

type accepted struct {
	at           time.Time
	id, sequence string
}

type known struct {
	key string
	at  time.Time
}

// find returns what was accepted under the key within the window.
func (d *dedup) find(key string, now time.Time) (accepted, bool) {
	for len(d.order) > 0 && now.Sub(d.order[0].at) >= dedupWindow {
		delete(d.known, d.order[0].key)
		d.order = d.order[1:]
	}
	a, ok := d.known[key]
	return a, ok
}

func (d *dedup) add(key string, a accepted) {
	if d.known == nil {
		d.known = map[string]accepted{}
	}
	d.known[key] = a
	d.order = append(d.order, known{key, a.at})
}

// attempt is what a receive with a ReceiveRequestAttemptId handed out.
type attempt struct {
	at       time.Time
	messages []*message
	receives []int
}
