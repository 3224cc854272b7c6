//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/history"
)

// fault is something that a nemesis does.
type fault struct {
	name     string
	majority bool // a majority of the brokers still answers, and clients reach it
	begin    func(ctx context.Context) error
}

// nemesis breaks one thing after another, chosen by a seed.
type nemesis struct {
	nodes *nodes
	b     broker
	crew  *crew
	h     *history.Writer
	dice  *rand.Rand
	only  string

	failedOver bool // the database has no standby any more
}

func newNemesis(o options, n *nodes, b broker, c *crew, h *history.Writer) *nemesis {
	return &nemesis{nodes: n, b: b, crew: c, h: h, dice: rand.New(rand.NewPCG(o.seed, 1)), only: o.only} //nolint:gosec // a seed
}

// rage breaks things until the time is over, and heals them.
func (n *nemesis) rage(ctx context.Context, lasts time.Duration) error {
	until := time.Now().Add(lasts)
	for halfway := time.Now().Add(lasts / 2); time.Now().Before(until); {
		if err := pause(ctx, n.between(3*time.Second, 8*time.Second)); err != nil {
			return err
		}
		f, err := n.draw()
		if err != nil {
			return err
		}
		if n.nodes.old != "" && time.Now().After(halfway) {
			f = fault{"brokers are upgraded in turn, from " + n.nodes.old, true, n.nodes.upgrade}
		}
		if err := n.inflict(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if n.nodes.old != "" {
		return errors.New("the brokers were not upgraded: the run was too short")
	}
	return nil
}

// inflict lets a fault last for a while, and heals it.
func (n *nemesis) inflict(ctx context.Context, f fault) error {
	answers := int64(0)
	if f.majority {
		answers = 1
	}
	fmt.Printf("%s  %s\n", time.Now().UTC().Format("15:04:05"), f.name)
	n.h.Add(history.Event{Kind: history.Fault, Text: f.name, N: answers})
	err := f.begin(ctx)
	if err == nil {
		err = pause(ctx, n.between(5*time.Second, 20*time.Second))
	}
	if err := errors.Join(err, n.nodes.heal()); err != nil {
		return err
	}
	n.h.Add(history.Event{Kind: history.Healed, Text: f.name})
	return nil
}

func (n *nemesis) between(least, most time.Duration) time.Duration {
	return least + time.Duration(n.dice.Int64N(int64(most-least)))
}

// draw chooses what is broken next, and where.
func (n *nemesis) draw() (fault, error) {
	order := n.dice.Perm(3)
	a, b, c := n.nodes.all[order[0]], n.nodes.all[order[1]], n.nodes.all[order[2]]
	all := []fault{
		{"a broker is killed: " + a.name, true, func(ctx context.Context) error { return n.nodes.kill(ctx, a) }},
		{"two brokers are killed: " + a.name + ", " + b.name, false, func(ctx context.Context) error { return n.nodes.kill(ctx, a, b) }},
		{"a broker is frozen: " + a.name, true, func(ctx context.Context) error { return n.nodes.freeze(ctx, a) }},
		{"a broker is isolated: " + a.name, true, func(ctx context.Context) error { return n.nodes.isolate(ctx, a) }},
		{"two brokers are isolated: " + a.name + ", " + b.name, false, func(ctx context.Context) error {
			return errors.Join(n.nodes.isolate(ctx, a), n.nodes.isolate(ctx, b))
		}},
		{"a link is cut both ways: " + a.name + ", " + b.name, true, func(ctx context.Context) error {
			return errors.Join(n.nodes.cut(ctx, a, b), n.nodes.cut(ctx, b, a))
		}},
		{"a link is cut one way: " + a.name + " to " + b.name, true, func(ctx context.Context) error { return n.nodes.cut(ctx, a, b) }},
		{"brokers are restarted in turn", true, func(ctx context.Context) error {
			for _, one := range []*node{a, b, c} {
				if err := n.nodes.restart(ctx, one); err != nil {
					return err
				}
			}
			return nil
		}},
		{"a consumer is killed", true, func(ctx context.Context) error { return n.crew.kill(ctx, n.dice.IntN(consumers)) }},
		{"a consumer is frozen", true, func(context.Context) error { return n.crew.freeze(n.dice.IntN(consumers), n.nodes) }},
		{"consumers are restarted in turn", true, func(ctx context.Context) error { return n.crew.restart(ctx) }},
	}
	if n.nodes.tracer {
		all = append(all, fault{"a broker has a slow disk: " + a.name, true, func(ctx context.Context) error { return n.nodes.slowDisk(ctx, a) }})
	}
	if (!n.failedOver || n.only != "") && os.Getenv(pairVariable) != "" {
		all = append(all, fault{"the database fails over to its standby", true, func(ctx context.Context) error {
			if n.failedOver {
				return errors.New("it has no standby any more")
			}
			n.failedOver = true
			return failOver(ctx)
		}})
	}
	all = append(all, n.b.faults(n.nodes, a, b)...)
	if n.only == "" {
		return all[n.dice.IntN(len(all))], nil
	}
	for _, f := range all {
		if len(f.name) >= len(n.only) && f.name[:len(n.only)] == n.only {
			return f, nil
		}
	}
	return fault{}, fmt.Errorf("no fault is called %q", n.only)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
