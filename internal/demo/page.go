package demo

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
)

// page is the live console of the demo, with buttons that cause faults.
type page struct {
	server *admin.Server
	link   string // logs in once
}

// open serves the page of all legs on a port of this host.
func (r *run) open(ctx context.Context) (*page, error) {
	cfg := admin.Config{Addr: "127.0.0.1:0", Instance: "demo", DeadLetters: map[string]transport.Source{}, Logger: zap.NewNop(), Actions: r.actions()}
	if r.move != nil {
		cfg.Actions = nil // a fault would belong to one side or the other
	}
	for _, l := range r.all() {
		cfg.Containers = append(cfg.Containers, l.box)
		cfg.DeadLetters[l.rig.name] = l.rig.dead
	}
	s, err := admin.New(cfg)
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	p := &page{server: s, link: s.Link(ctx)}
	if p.link == "" { // no place for a token on this host: the page opens without a login, read-only
		p.link = "http://" + s.Addr() + "/"
	}
	return p, nil
}

func (p *page) close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	return p.server.Stop(ctx)
}

// actions are the buttons: what the steps of the demo do, whenever a person wants it.
func (r *run) actions() []admin.Action {
	const group = "Cause a fault"
	return []admin.Action{
		{Name: "cut", Group: group, Label: "Cut connections", Help: "resets every connection to the brokers", Do: func(ctx context.Context) (string, error) { return r.cut(ctx), nil }},
		{Name: "poison", Group: group, Label: "Send poison", Help: "orders that cannot be decoded", Do: func(ctx context.Context) (string, error) { return r.poison(ctx), nil }},
		{Name: "slow", Group: group, Label: "Slow downstream on/off", Help: "each order takes 25 times as long, until it is pressed again", Do: func(context.Context) (string, error) { return r.slow(), nil }},
		{Name: "throttle", Group: group, Label: "Throttle", Help: "2 handlers at once on each broker, until it is cleared", Do: func(context.Context) (string, error) {
			r.each(func(l *leg) { l.limit("demo", "the bank asked for less load") })
			return "2 at once on each broker", nil
		}},
		{Name: "burst", Group: group, Label: "Burst", Help: "many orders at once", Do: func(ctx context.Context) (string, error) { return r.burst(ctx), nil }},
	}
}

const slowDown = 25

// slow makes each order take longer, or no longer.
func (r *run) slow() string {
	text := ""
	for _, l := range r.legs {
		if l.pace.Load() > 1 {
			l.pace.Store(1)
			text = "off: an order takes as long as before"
		} else {
			l.pace.Store(slowDown)
			text = fmt.Sprintf("on: an order takes %v", slowDown*workTime)
		}
	}
	r.event("fault", "slow downstream "+text)
	return text
}

// limit sets the permits of a leg by hand.
func (l *leg) limit(by, reason string) {
	n := permits
	l.gate.Override(throttle.Override{Permits: &n, By: by, Reason: reason})
}

// The load of a demo that stays.
const (
	stayBurst  = 25 * time.Second
	stayPoison = 60 * time.Second
	stayLimit  = 6 * time.Second // then the first broker is limited, until a person notices
	stayBatch  = 400
)

// stay keeps the load up until ctx ends. After a few seconds one broker is throttled, as if by a
// colleague: the page shows why its orders are slow, and can clear the limit.
func (r *run) stay(ctx context.Context) {
	bursts, poison, limit := time.NewTicker(stayBurst), time.NewTicker(stayPoison), time.NewTimer(stayLimit)
	defer bursts.Stop()
	defer poison.Stop()
	defer limit.Stop()
	r.burst(ctx)
	r.poison(ctx)
	for ctx.Err() == nil {
		select {
		case <-bursts.C:
			r.each(func(l *leg) { l.producer.extra(ctx, stayBatch, false) })
		case <-poison.C:
			r.poison(ctx)
		case <-limit.C:
			r.legs[0].limit("carol", "month end: the ledger asked for less load")
			r.event("throttle", fmt.Sprintf("%s: %d permits, until they are cleared on the page", r.legs[0].rig.name, permits))
		case <-ctx.Done():
		}
	}
}
