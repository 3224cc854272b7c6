//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/effects"
	"github.com/longshore-go/longshore/internal/testkit/history"
)

// options are what a run is told.
type options struct {
	on      string        // rabbitmq or kafka
	lasts   time.Duration // under fire; the end comes after it
	seed    uint64
	rate    int    // messages a second
	unsafe  bool   // producers take everything as confirmed: shows that the checker sees real loss
	only    string // of the nemesis, for a single fault
	folder  string // of the history
	consume string // the name of a consuming process: this is one
	endure  bool   // nothing is broken; what the consumers take is measured
	picture string // where that is drawn
}

func main() {
	var o options
	flag.StringVar(&o.on, "on", "rabbitmq", "rabbitmq or kafka")
	flag.DurationVar(&o.lasts, "for", 10*time.Minute, "how long it is under fire")
	flag.Uint64Var(&o.seed, "seed", 0, "of the nemesis; 0 = a new one, which is printed")
	flag.IntVar(&o.rate, "rate", 200, "messages a second")
	flag.BoolVar(&o.unsafe, "unsafe", false, "producers do not wait for confirms, and RabbitMQ's queue is on one node: a control run, which has to lose messages")
	flag.StringVar(&o.only, "only", "", "one fault of the nemesis, by name")
	flag.StringVar(&o.folder, "history", "", "where the folder of the history is made, which is kept when a promise is broken; default: the system's folder for temporary files")
	flag.StringVar(&o.consume, "consume", "", "be a consuming process of this name (internal)")
	flag.BoolVar(&o.endure, "endure", false, "break nothing, restart and rescale each minute, and fail if memory, goroutines or descriptors grow")
	flag.StringVar(&o.picture, "picture", "", "with -endure: where what is measured is drawn (SVG)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := fire
	if o.consume != "" {
		run = consume
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// fire runs everything and judges it.
func fire(ctx context.Context, o options) (err error) {
	o.seed = cmp.Or(o.seed, rand.Uint64()) //nolint:gosec // a seed
	if o.folder, err = os.MkdirTemp(o.folder, "longshore-history-"); err != nil {
		return err
	}
	if o.picture != "" {
		if err := os.MkdirAll(filepath.Dir(o.picture), 0o755); err != nil { //nolint:gosec // of the documentation
			return err
		}
	}
	fmt.Printf("%s under fire for %s, seed %d, history in %s\n", o.on, o.lasts, o.seed, o.folder)
	nodes, err := findNodes(ctx, o.on)
	if err != nil {
		return err
	}
	b := newBroker(o.on, nodes, o.unsafe)
	if err := b.prepare(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	table, err := newEffects(ctx)
	if err != nil {
		return err
	}
	defer table.Drop(context.WithoutCancel(ctx))
	h, err := history.Create(o.folder, "nemesis")
	if err != nil {
		return err
	}
	crew := newCrew(o, h, b, table.Prefix())
	defer crew.end()
	if err := crew.start(ctx); err != nil {
		return err
	}
	if err := underFire(ctx, o, b, crew, newNemesis(o, nodes, b, crew, h)); err != nil {
		return err
	}
	measured := crew.name[0]
	if err := crew.stopAll(); err != nil {
		return err
	}
	if err := leftovers(ctx, o, b, table); err != nil {
		return err
	}
	if err := h.Close(); err != nil {
		return err
	}
	var grown error
	if o.endure {
		grown = flat(o, measured)
	}
	if err := judge(ctx, o); err != nil || grown != nil {
		return errors.Join(grown, err)
	}
	fmt.Println("no promise is broken")
	return os.RemoveAll(o.folder) // made by this run
}

// underFire lets producers and nemesis work, heals what is broken, and waits until the
// consumers have done what is there.
func underFire(ctx context.Context, o options, b broker, c *crew, n *nemesis) error {
	producing, enough := context.WithCancel(ctx)
	defer enough()
	var (
		all    sync.WaitGroup
		sent   counter
		failed = make(chan error, producers+1)
	)
	for p := range producers {
		all.Go(func() { failed <- produce(producing, o, b, p, &sent) })
	}
	work := n.rage
	if o.endure {
		work = n.endure
		all.Go(func() { failed <- watchQueue(producing, o, b) })
	}
	err := work(ctx, o.lasts)
	enough()
	all.Wait()
	close(failed)
	for e := range failed {
		err = cmp.Or(err, e)
	}
	if err != nil {
		return err
	}
	fmt.Printf("sent %d, confirmed %d; waiting for the consumers\n", sent.sent.Load(), sent.confirmed.Load())
	return c.idle(ctx, time.Duration(patience)*time.Second)
}

// patience is how many seconds the consumers have to do what is left once all is healed.
const patience = 120

// leftovers writes what is still at the broker, and what had an effect.
func leftovers(ctx context.Context, o options, b broker, table *effects.Table) error {
	h, err := history.Create(o.folder, "end")
	if err != nil {
		return err
	}
	left, err := b.left(ctx)
	if err != nil {
		return fmt.Errorf("read what is left: %w", err)
	}
	for _, id := range left {
		h.Add(history.Event{Kind: history.Left, ID: id})
	}
	if err := writeEffects(ctx, table, h, o.folder); err != nil {
		return err
	}
	return h.Close()
}

// judge runs the checker.
func judge(ctx context.Context, o options) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./tools/historycheck", "-ordered", "-effects", o.folder) //nolint:gosec // our own checker
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("promises are broken, or the checker failed: %w; seed %d, history in %s", err, o.seed, o.folder)
	}
	return nil
}
