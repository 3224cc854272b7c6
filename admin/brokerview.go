package admin

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// Consumers are the consumers of a container's source, as the broker lists them.
type Consumers struct {
	At time.Time `json:"at,omitzero"`
	// Problem is why the broker's list is not available, Help how to make it so.
	Problem string `json:"problem,omitempty"`
	Help    string `json:"help,omitempty"`
	Total   int    `json:"total"`
	// Share is this container's part of the deliveries in the last minute, or of the partitions
	// of a partitioned source; null: not known.
	Share *float64         `json:"share"`
	List  []SourceConsumer `json:"list"`
}

// SourceConsumer is a consumer of the source.
type SourceConsumer struct {
	ID      string `json:"id"`
	Host    string `json:"host,omitempty"`
	Client  string `json:"client,omitempty"`
	Product string `json:"product,omitempty"` // program or library, with its version
	// Prefetch is how many deliveries it may hold unsettled; 0: no limit, or the broker has none.
	Prefetch int `json:"prefetch,omitempty"`
	// Partitions is how many are assigned to it; null: the source is not partitioned.
	Partitions *int `json:"partitions"`
	Standby    bool `json:"standby,omitempty"`
	Own        bool `json:"own,omitempty"`
}

const (
	consumersFor  = 5 * time.Second  // how long a list of consumers is kept
	consumersFail = 20 * time.Second // how long a failed request for it is
	brokerTime    = 2 * time.Second  // the most that a refresh takes
)

// brokerView caches a container's partitions and consumers for all viewers. One request at a
// time refreshes it; the other requests get the cached values.
type brokerView struct {
	refreshing sync.Mutex // held during a refresh

	mu         sync.Mutex
	partitions []transport.PartitionProgress
	at         time.Time // when the partitions were read
	consumers  *Consumers
	next       time.Time // when the consumers are read again
	arrivals   arrivals
}

// look refreshes what is due, unless another request does, and returns the cached values.
func (v *brokerView) look(ctx context.Context, c *container.ListenerContainer) ([]transport.PartitionProgress, *Consumers) {
	if v.refreshing.TryLock() {
		v.refresh(ctx, c, time.Now())
		v.refreshing.Unlock()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.partitions, v.consumers
}

func (v *brokerView) refresh(ctx context.Context, c *container.ListenerContainer, now time.Time) {
	v.mu.Lock()
	parts, all := now.Sub(v.at) >= detailFor, !now.Before(v.next)
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, brokerTime)
	defer cancel()
	if parts {
		list := c.PartitionProgress(ctx)
		v.mu.Lock()
		v.partitions, v.at = list, now
		v.mu.Unlock()
	}
	if !all {
		return
	}
	list, err := c.Consumers(ctx)
	received := c.Stats().Received
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil && errors.Is(ctx.Err(), context.Canceled) { // the viewer has left
		return
	}
	v.next = now.Add(consumersFor)
	if err != nil {
		v.next = now.Add(consumersFail)
		v.consumers = unlisted(err)
		return
	}
	v.consumers = consumersOf(list)
	if share, ok := v.arrivals.add(list.At, received, list.Delivered); ok && v.consumers.Share == nil {
		v.consumers.Share = &share
	}
}

// unlisted explains why the list is not available; nil where the source never has one. The
// viewer knows which source it is about, so an unsupported list is explained by its cause alone.
func unlisted(err error) *Consumers {
	e, ok := errors.AsType[*longshore.Error](err)
	switch {
	case !ok:
		return &Consumers{Problem: err.Error(), List: []SourceConsumer{}}
	case e.Hint == "" && (e.Code == longshore.CodeUnsupported || e.Code == longshore.CodeState):
		return nil
	case e.Code == longshore.CodeUnsupported && e.Err != nil:
		return &Consumers{Problem: e.Err.Error(), Help: e.Hint, List: []SourceConsumer{}}
	}
	return &Consumers{Problem: e.Text(), Help: e.Hint, List: []SourceConsumer{}}
}

func consumersOf(list transport.ConsumerList) *Consumers {
	out := &Consumers{At: list.At, Total: list.Total, List: []SourceConsumer{}}
	own := 0
	for _, l := range list.Consumers {
		c := SourceConsumer{ID: l.ID, Host: l.Host, Client: l.Client, Product: l.Product, Prefetch: l.Prefetch, Standby: l.Standby, Own: l.Own}
		if l.Partitions >= 0 {
			c.Partitions = &l.Partitions
			if l.Own {
				own += l.Partitions
			}
		}
		out.List = append(out.List, c)
	}
	if list.Partitions > 0 {
		share := float64(own) / float64(list.Partitions)
		out.Share = &share
	}
	return out
}

const (
	arrivalsFor = time.Minute // the time over which the share is measured
	fewArrivals = 10          // with fewer deliveries the share is not known
)

// arrivals compares the broker's count of deliveries with this container's. The broker's count is
// some seconds old, so they are compared over a minute.
type arrivals struct{ seen []arrival }

type arrival struct {
	at                  time.Time
	received, delivered int64
}

// add adds both counts, delivered by the broker (-1: unknown), and returns this container's share.
func (a *arrivals) add(at time.Time, received, delivered int64) (share float64, ok bool) {
	if delivered < 0 {
		a.seen = nil
		return 0, false
	}
	if n := len(a.seen); n > 0 {
		last := a.seen[n-1]
		if !at.After(last.at) {
			return a.share()
		}
		if delivered < last.delivered || received < last.received { // a restart, there or here
			a.seen = nil
		}
	}
	a.seen = append(a.seen, arrival{at, received, delivered})
	for len(a.seen) > 2 && at.Sub(a.seen[1].at) >= arrivalsFor {
		a.seen = a.seen[1:]
	}
	return a.share()
}

func (a *arrivals) share() (float64, bool) {
	if len(a.seen) < 2 {
		return 0, false
	}
	first, last := a.seen[0], a.seen[len(a.seen)-1]
	if last.delivered-first.delivered < fewArrivals {
		return 0, false
	}
	return min(1, float64(last.received-first.received)/float64(last.delivered-first.delivered)), true
}
