package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// size is how much is done.
type size struct{ ids, kills int }

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := consumeIfChild(ctx)
	if errors.Is(err, errParent) {
		err = run(ctx, os.Stdout, os.Args[0], size{ids: 10_000, kills: 5})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the parent: brokers, producer, killer and judge.
func run(ctx context.Context, out io.Writer, program string, n size) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "twobrokers")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, stop, err := places(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	shop, err := openShop(p)
	if err != nil {
		return err
	}
	defer func() { _ = shop.close() }()
	if err := shop.create(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.drop(context.WithoutCancel(ctx))) }()

	crew := &crew{program: program, place: p}
	defer crew.end()
	for i := range members {
		if err := crew.hire(ctx, i); err != nil {
			return err
		}
	}
	published := make(chan error, 1)
	go func() { published <- publish(ctx, p, n.ids) }()
	err = crew.killAlong(ctx, shop, n)
	err = errors.Join(err, <-published)
	if err == nil {
		err = shop.wait(ctx, n.ids)
	}
	if err == nil {
		err = crew.dismiss() // when both brokers have nothing more
	}
	if err != nil {
		return err
	}
	return shop.judge(ctx, out, n, crew.killed)
}
