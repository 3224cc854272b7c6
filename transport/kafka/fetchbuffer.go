package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
)

// queue holds what was fetched of a partition and not handed out: as the client gave
// it, and the first few records as deliveries. These are made some at a time, since
// an allocation for each costs more than all the rest of a record's way; not many at
// a time, since one that stays out keeps the memory of all.
type queue struct {
	fetched []fetched
	made    []longshore.Delivery
	bytes   int64 // of made
}

// fetched is what one fetch brought.
type fetched struct {
	recs  []*kgo.Record
	bytes int64 // of recs
	at    time.Time
}

const madeAtOnce = 32

func (q *queue) empty() bool { return len(q.made) == 0 && len(q.fetched) == 0 }

func (q *queue) push(recs []*kgo.Record, at time.Time) (bytes int64) {
	for _, r := range recs {
		bytes += weight(r)
	}
	q.fetched = append(q.fetched, fetched{recs, bytes, at})
	return bytes
}

// next takes up to n records of which deliveries are to be made.
func (q *queue) next(n int) (recs []*kgo.Record, at time.Time, bytes int64) {
	if len(q.fetched) == 0 {
		return nil, at, 0
	}
	f := &q.fetched[0]
	n = min(n, len(f.recs))
	recs, bytes = f.recs[:n], f.bytes*int64(n)/int64(len(f.recs))
	f.recs, f.bytes = f.recs[n:], f.bytes-bytes
	at = f.at
	if len(f.recs) == 0 {
		*f = fetched{}
		q.fetched = q.fetched[1:]
	}
	return recs, at, bytes
}

// pop takes up to n of those that are made.
func (q *queue) pop(n int) (ds []longshore.Delivery, bytes int64) {
	n = min(n, len(q.made))
	ds, bytes = q.made[:n], q.bytes*int64(n)/int64(len(q.made))
	q.made, q.bytes = q.made[n:], q.bytes-bytes
	if len(q.made) == 0 {
		q.made = nil
	}
	return ds, bytes
}

// weight is about what a record takes in memory.
func weight(r *kgo.Record) int64 {
	n := 256 + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += 64 + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(n)
}
