package dlq

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Log is a source that keeps what was consumed, such as a Kafka topic: what was
// replayed is remembered alongside it, and removing means to forget its oldest part.
type Log interface {
	transport.ProgressReader
	transport.Truncater
}

// Letter is one dead letter that was looked at.
type Letter struct {
	*longshore.Delivery

	Facts    Facts
	Replayed bool // from a log, in which it stays
}

// A page of a look: the first ones are small, so that the first messages are shown soon
// and a look that ends after a few has not read thousands.
const (
	firstPage = 64
	pageSize  = 10_000
	logPage   = 500
)

// Look goes over the dead letters of src, the oldest first, until each returns
// false, limit were looked at, or there are no more; the latter is whole. A source that
// is a transport.Scanner hands over each as soon as it is read, and nothing is read after
// each returned false; of the others a page of at most limit is read at a time. What was
// handed over before an error counts.
func Look(ctx context.Context, src transport.Source, limit int, each func(Letter) bool) (whole bool, err error) {
	if limit <= 0 {
		return false, nil
	}
	size := pageSize
	done := func(*longshore.Delivery) bool { return false }
	if l, ok := src.(Log); ok {
		size = logPage
		if done, err = l.Done(ctx); err != nil {
			return false, err
		}
	}
	show := func(d *longshore.Delivery) bool {
		return each(Letter{Delivery: d, Facts: FactsOf(d), Replayed: done(d)})
	}
	switch s := src.(type) {
	case transport.Scanner:
		return s.Scan(ctx, limit, show)
	case transport.Browser:
		return pages(ctx, s, size, limit, show)
	}
	return false, &longshore.Error{Code: longshore.CodeUnsupported, Op: "look at dead letters", Err: errors.New("this source cannot be looked into")}
}

// pages goes over the pages of a Browser, each larger than the one before up to most.
func pages(ctx context.Context, b transport.Browser, most, limit int, show func(*longshore.Delivery) bool) (whole bool, err error) {
	size, next := firstPage, ""
	for seen := 0; seen < limit; size = min(4*size, most) {
		var page []*longshore.Delivery
		n := min(size, limit-seen)
		page, next, err = b.Browse(ctx, next, n)
		if err != nil {
			return false, err
		}
		for _, d := range page {
			seen++
			if !show(d) {
				return false, nil
			}
		}
		if next == "" || len(page) == 0 {
			return len(page) < n, nil
		}
	}
	return false, nil
}
