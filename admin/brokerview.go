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

// Consumers are all who consume from a container's source, by the broker's account.
type Consumers struct {
	At time.Time `json:"at,omitzero"`
	// Problem says why they are not known, Help what to do about it.
	Problem string `json:"problem,omitempty"`
	Help    string `json:"help,omitempty"`
	Total   int    `json:"total"`
	// Share is the part of what the broker handed out that this container received, over
	// the last minute; of a partitioned source its part of the partitions. Null: not known.
	Share *float64         `json:"share"`
	List  []SourceConsumer `json:"list"`
}

// SourceConsumer is one of them.
type SourceConsumer struct {
	ID      string `json:"id"`
	Host    string `json:"host,omitempty"`
	Client  string `json:"client,omitempty"`
	Product string `json:"product,omitempty"` // program or library, with its version
	// Prefetch is how much the broker sends it ahead; 0: without a limit, or no such thing.
	Prefetch int `json:"prefetch,omitempty"`
	// Partitions is how many it has; null: the source has none.
	Partitions *int `json:"partitions"`
	Standby    bool `json:"standby,omitempty"`
	Own        bool `json:"own,omitempty"`
}

const (
	consumersFor  = 5 * time.Second  // for how long an answer about consumers serves all
	consumersFail = 20 * time.Second // and a failure
	brokerTime    = 2 * time.Second  // bounds one look
)

// brokerView is what the broker says of a container's source, kept for all viewers. One of
// them waits for the broker, the others get what was known before.
type brokerView struct {
	asking sync.Mutex // of the one who asks

	mu         sync.Mutex
	partitions []transport.PartitionProgress
	at         time.Time // of the partitions
	consumers  *Consumers
	next       time.Time // the consumers are asked for again
	arrivals   arrivals
}

// look asks the broker if it is time, and returns what is known.
func (v *brokerView) look(ctx context.Context, c *container.ListenerContainer) ([]transport.PartitionProgress, *Consumers) {
	if v.asking.TryLock() {
		v.refresh(ctx, c, time.Now())
		v.asking.Unlock()
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
	if ctx.Err() != nil && err != nil && errors.Is(ctx.Err(), context.Canceled) { // the viewer has left
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

// unlisted says why the consumers are not known; nil where the broker has no such list.
func unlisted(err error) *Consumers {
	var e *longshore.Error
	if !errors.As(err, &e) {
		return &Consumers{Problem: err.Error(), List: []SourceConsumer{}}
	}
	if e.Hint == "" && (e.Code == longshore.CodeUnsupported || e.Code == longshore.CodeState) {
		return nil
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
	arrivalsFor = time.Minute // over which the share is measured
	fewArrivals = 10          // below which it says nothing
)

// arrivals compares what the broker handed out with what came here. The broker's count is
// some seconds old, so it is compared over a minute.
type arrivals struct{ seen []arrival }

type arrival struct {
	at                  time.Time
	received, delivered int64
}

// add takes a count of the broker, -1 for none, and returns this container's share.
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
