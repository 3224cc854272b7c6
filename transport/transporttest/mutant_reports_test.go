package transporttest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// PartitionProgress makes a log of one partition of the queue: what waits is after the position,
// what is held after the commit.
func (c *mutantConsumer) PartitionProgress(context.Context) []transport.PartitionProgress {
	i := c.m.b.Inspect(c.m.name())
	at := transport.PartitionProgress{Topic: c.m.name(), End: int64(i.Published), Committed: int64(i.Acked)} //nolint:gosec // a test's
	at.Position = at.End - int64(i.Ready+i.Delayed+c.inner.Buffered())
	switch c.bug() {
	case "progress-commits-what-is-handed-out":
		at.Committed = at.Position
	case "progress-never-commits":
		at.Committed = 0
	case "progress-end-is-position":
		at.End = at.Position
	case "progress-position-is-end":
		at.Position = at.End
	case "progress-repeats-a-partition":
		return []transport.PartitionProgress{at, at}
	}
	return []transport.PartitionProgress{at}
}

// Consumers lists those of the mutant that are open.
func (c *mutantConsumer) Consumers(context.Context) (transport.ConsumerList, error) {
	list := transport.ConsumerList{At: time.Now(), Delivered: -1}
	c.m.mu.Lock()
	all := slices.Clone(c.m.opened)
	c.m.mu.Unlock()
	for i, o := range all {
		if o.closed.Load() && c.bug() != "consumers-keeps-the-closed" || o != c && c.bug() == "consumers-lists-only-itself" {
			continue
		}
		l := transport.ListedConsumer{ID: fmt.Sprintf("c-%d", i), Partitions: -1, Own: o == c || c.bug() == "consumers-calls-all-its-own"}
		if c.bug() == "consumers-shares-an-id" {
			l.ID = "c"
		}
		list.Consumers = append(list.Consumers, l)
	}
	list.Total = len(list.Consumers)
	switch c.bug() {
	case "consumers-without-time":
		list.At = time.Time{}
	case "consumers-total-too-small":
		list.Total--
	case "consumers-refuses-without-a-reason":
		return list, &longshore.Error{Code: longshore.CodeUnsupported}
	}
	return list, nil
}
