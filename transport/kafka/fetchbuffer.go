package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
)

// fetchBuffer holds what was fetched of a partition and not handed out: as the client gave
// it, and the first few records as deliveries. Deliveries are made some at a time, because
// an allocation for each would cost more than the rest of a record's way; and not many at a
// time, because one that stays in hand keeps the memory of all. Its partition's lock guards
// it.
type fetchBuffer struct {
	at   tp    // the partition, to hold and resume its fetching
	flow *flow // the account of all partitions

	fetched   []fetched            // as the client gave it, oldest first
	made      []longshore.Delivery // of the records before fetched
	madeBytes int64                // of made
	bytes     int64                // of all that waits
	drops     int                  // how often it was emptied, so that a delivery made meanwhile is not added

	blocked bool // its window is full: what waits cannot be handed out and is not in the account
	full    bool // it has enough, until little is left
	held    bool // and the client does not fetch it
}

// fetched is what one fetch brought.
type fetched struct {
	recs  []*kgo.Record // not copied: they share the memory of their fetch
	bytes int64         // of recs
	at    time.Time     // when it came
}

// madeAtOnce is how many deliveries are made together.
const madeAtOnce = 32

func (b *fetchBuffer) empty() bool { return len(b.made) == 0 && len(b.fetched) == 0 }

// push adds what a fetch brought. What waits behind a full window is not in the account of all
// partitions: it could keep the client from fetching what others can hand out.
func (b *fetchBuffer) push(recs []*kgo.Record, at time.Time) {
	var bytes int64
	for _, r := range recs {
		bytes += weight(r)
	}
	b.fetched = append(b.fetched, fetched{recs, bytes, at})
	b.bytes += bytes
	if !b.blocked {
		b.flow.add(bytes)
	}
}

// next takes up to n records of which deliveries are to be made.
func (b *fetchBuffer) next(n int) (recs []*kgo.Record, at time.Time, bytes int64) {
	if len(b.fetched) == 0 {
		return nil, at, 0
	}
	f := &b.fetched[0]
	n = min(n, len(f.recs))
	recs, bytes = f.recs[:n], f.bytes*int64(n)/int64(len(f.recs))
	f.recs, f.bytes = f.recs[n:], f.bytes-bytes
	at = f.at
	if len(f.recs) == 0 {
		*f = fetched{}
		b.fetched = b.fetched[1:]
	}
	return recs, at, bytes
}

// pop takes up to n of the deliveries that are made.
func (b *fetchBuffer) pop(n int) (ds []longshore.Delivery) {
	n = min(n, len(b.made))
	bytes := b.madeBytes * int64(n) / int64(len(b.made))
	ds = b.made[:n]
	b.made, b.madeBytes = b.made[n:], b.madeBytes-bytes
	if len(b.made) == 0 {
		b.made = nil
	}
	b.shrink(bytes)
	return ds
}

// nextOffset is that of the record which is handed out next; fallback if none waits.
func (b *fetchBuffer) nextOffset(fallback int64) int64 {
	switch {
	case len(b.made) > 0:
		return int64(b.made[0].Origin.Position) //nolint:gosec // it was an int64
	case len(b.fetched) > 0:
		return b.fetched[0].recs[0].Offset
	}
	return fallback
}

// drop forgets what waits.
func (b *fetchBuffer) drop() {
	b.shrink(b.bytes)
	b.fetched, b.made, b.madeBytes = nil, nil, 0
	b.drops++
}

// block says that the window is full, or no longer. What waits behind a full window does
// not count as something that could be handed out, or one blocked partition would stop all.
func (b *fetchBuffer) block(on bool) {
	b.blocked = on
	if on {
		b.full = true
		b.flow.remove(b.bytes)
	} else {
		b.flow.add(b.bytes)
	}
}

// shrink takes bytes that were handed out from the account, and wakes the poller when little
// is left: at once rather than for each record, since waking costs as much as a record.
func (b *fetchBuffer) shrink(n int64) {
	b.bytes -= n
	if !b.blocked {
		b.flow.remove(n)
		if b.bytes < littleBytes && b.bytes+n >= littleBytes {
			b.flow.wake()
		}
	}
	b.feed()
}

// feed lets the client fetch the partition again when little is left.
func (b *fetchBuffer) feed() {
	if !b.full || b.blocked || b.bytes >= littleBytes {
		return
	}
	b.full = false
	b.release()
	b.flow.wake()
}

// needs reports whether the partition needs records soon, and whether the client still
// fetches for it although it has enough.
func (b *fetchBuffer) needs() (records, hold bool) {
	b.full = b.full || b.bytes > muchBytes
	return !b.full && b.bytes < littleBytes, b.full && !b.held
}

// hold keeps the client from fetching for a partition that has enough.
func (b *fetchBuffer) hold() {
	if b.full && !b.held {
		b.held = true
		b.flow.hold(b.at)
	}
}

// release ends a hold.
func (b *fetchBuffer) release() {
	if b.held {
		b.held = false
		b.flow.resume(b.at)
	}
}

// weight is about what a record takes in memory.
func weight(r *kgo.Record) int64 {
	n := 256 + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += 64 + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(n)
}
