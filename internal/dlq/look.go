package dlq

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Log is a source that keeps what was consumed, such as a Kafka topic: what was
// replayed is remembered beside it, and removing means to forget its oldest part.
type Log interface {
	// Done tells what the source's group has done with.
	// It is asked about the messages of a partition in their order.
	Done(ctx context.Context) (func(*longshore.Delivery) bool, error)
	// Truncate removes everything before a position of each partition.
	Truncate(ctx context.Context, before map[int32]int64) error
}

// Letter is one dead letter that was looked at.
type Letter struct {
	*longshore.Delivery

	Facts    Facts
	Replayed bool // from a log, in which it stays
}

// pageSize is how many messages one look takes. Of a queue whose type is not known
// there is only one look: what it takes comes back to a place that is not known.
const (
	pageSize = 10_000
	logPage  = 500
)

// Look goes over the dead letters of src, the oldest first, until each returns
// false, limit were looked at, or there are no more; the latter is whole.
func Look(ctx context.Context, src transport.Source, limit int, each func(Letter) bool) (whole bool, err error) {
	browser, ok := src.(transport.Browser)
	if !ok {
		return false, &longshore.Error{Code: longshore.CodeUnsupported, Op: "look at dead letters", Err: errors.New("this source cannot be looked into")}
	}
	size := pageSize
	done := func(*longshore.Delivery) bool { return false }
	if l, ok := src.(Log); ok {
		size = logPage
		if done, err = l.Done(ctx); err != nil {
			return false, err
		}
	}
	for next, seen := "", 0; seen < limit; {
		var page []*longshore.Delivery
		n := min(size, limit-seen)
		page, next, err = browser.Browse(ctx, next, n)
		if err != nil {
			return false, err
		}
		for _, d := range page {
			seen++
			l := Letter{Delivery: d, Facts: FactsOf(d), Replayed: done(d)}
			if !each(l) {
				return false, nil
			}
		}
		if next == "" || len(page) == 0 {
			return len(page) < n, nil
		}
	}
	return false, nil
}
