package amqp

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// statisticsLag is how old the management API's counts may be: a queue reports them every 5 s,
// and the API keeps an answer for a while.
const statisticsLag = 10 * time.Second

// uncounted is what AMQP does not report.
const uncounted = "unacknowledged messages and the delay queues longshore.delay.*: set Management"

// Remaining counts what the queues hold, and what waits in their delay queues. AMQP reports
// ready messages and consumers; unacknowledged messages, delayed retries of quorum queues and
// the names of the delay queues come from the management API, if Config.Management names it.
// Errors: those of Open.
func (s *Queue) Remaining(ctx context.Context) (transport.Remaining, error) {
	op := "count what remains in " + s.title()
	if s.cast != nil {
		return transport.Remaining{}, &longshore.Error{Code: longshore.CodeUnsupported, Op: op, Source: s.name(),
			Err: errors.New("the queue of a broadcast goes with its consumer"), Hint: "count the queues that are bound to the exchange"}
	}
	r := transport.Remaining{Exact: s.b.set.Management != "", Uncounted: uncounted}
	var delays []string
	waiting := map[string]heldMessages{}
	if r.Exact {
		r.Uncounted, r.Lag = "", statisticsLag
		for _, q := range s.queues {
			held, err := s.b.set.heldBy(ctx, q)
			if err != nil {
				return transport.Remaining{}, err
			}
			waiting[q] = held
			more, err := s.b.set.delayQueuesOf(ctx, q)
			if err != nil {
				return transport.Remaining{}, err
			}
			delays = append(delays, more...)
		}
	}
	sess, err := s.b.consume.Acquire(ctx)
	if err != nil {
		return transport.Remaining{}, s.opening(err)
	}
	places, err := countPlaces(ctx, sess, s.queues, delays)
	if err = errors.Join(err, s.b.consume.Release(ctx, sess)); err != nil {
		return transport.Remaining{}, s.b.set.brokerError(op, s.name(), err)
	}
	for _, p := range places {
		held := waiting[p.Name]
		p.Unsettled, p.Delayed = held.Unacknowledged, p.Delayed+held.Delayed
		r.Add(p)
	}
	return r, nil
}

// heldMessages are those of a queue that are not ready.
type heldMessages struct {
	Unacknowledged int64 `json:"messages_unacknowledged"`
	Delayed        int64 `json:"messages_delayed"` // retries that a quorum queue delays, from 4.3 on
	DeadLettering  int64 `json:"messages_dlx"`     // on their way to a dead-letter exchange, at least once
}

// heldBy counts what consumers hold and, of a quorum queue, what is on its way to its dead-letter
// destination: neither is in the ready count.
func (s *settings) heldBy(ctx context.Context, queue string) (heldMessages, error) {
	var held heldMessages
	_, err := s.askManagement(ctx, &held, nil, "queues", s.addr.VHost, queue)
	held.Unacknowledged += held.DeadLettering
	return held, err
}

// delayQueuesOf finds the queues in which retries of another queue wait.
func (s *settings) delayQueuesOf(ctx context.Context, queue string) ([]string, error) {
	var found struct {
		Items []struct {
			Name string `json:"name"`
		} `json:"items"`
	}
	query := url.Values{"name": {"^" + regexp.QuoteMeta(codec.DelayStem(queue)) + "[0-9]+$"}, "use_regex": {"true"}, "page": {"1"}, "page_size": {"500"}}
	if _, err := s.askManagement(ctx, &found, query, "queues", s.addr.VHost); err != nil {
		return nil, err
	}
	names := make([]string, len(found.Items))
	for i, q := range found.Items {
		names[i] = q.Name
	}
	slices.Sort(names)
	return names, nil
}

// countPlaces counts ready messages over AMQP, where counts are never old: first what is
// delayed, for a retry that becomes due meanwhile is then counted twice, and never missed. A
// delay queue that has gone meanwhile held nothing.
func countPlaces(ctx context.Context, sess *conn.Session, queues, delays []string) (places []transport.Place, err error) {
	var late []transport.Place
	for _, name := range delays {
		d, err := countReady(ctx, sess, []string{name})
		if e, ok := conn.AsAMQP(err); ok && e.Code == amqp091.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		late = append(late, transport.Place{Name: name, Delayed: int64(d.ready)})
	}
	for _, name := range queues {
		d, err := countReady(ctx, sess, []string{name})
		if err != nil {
			return nil, err
		}
		places = append(places, transport.Place{Name: name, Ready: int64(d.ready), Consumers: int64(d.consumers)})
	}
	return append(places, late...), nil
}

// Neighbour is another queue of the broker. It must exist; its messages have the same key.
func (s *Queue) Neighbour(name string) transport.Source {
	return s.b.Queue(name, QueueConfig{Prefetch: s.cfg.Prefetch, SettleLinger: s.cfg.SettleLinger, Key: s.cfg.Key, BrowseCounts: s.cfg.BrowseCounts})
}
