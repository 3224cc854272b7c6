package cluster

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Until the client knows the cluster it asks one seed after the other and waits up to 10 s
// for each (franz-go v1.22.3, pkg/kgo/broker.go; https://github.com/twmb/franz-go/issues/316
// is about seeds that are gone). One address that takes connections and never answers, as
// behind a firewall that drops, would use up the time of an opening. So a question goes to
// the next broker after half a second.
const hedgeAfter = 500 * time.Millisecond

// A connection may end before the answer is read, which then says nothing: a broker that
// refuses a login gives the reason and hangs up, and the end can overtake the reason. So a
// first request is repeated a few times: the reason is worth more than a fast "unreachable".
const (
	hangUpTries = 3
	hangUpPause = 50 * time.Millisecond
)

// First returns the first answer of any broker, or the first error if none answers.
// Brokers that the cluster has named come first: the seeds may be long gone. question makes
// the request, one for each broker, because the client writes into it.
func First(ctx context.Context, cl *kgo.Client, question func() kmsg.Request) (kmsg.Response, error) {
	type answer struct {
		node int
		resp kmsg.Response
		err  error
	}
	known := cl.DiscoveredBrokers()
	nodes := append(known, cl.SeedBrokers()...)
	heard := make([]bool, len(nodes))
	answers := make(chan answer, len(nodes))
	var asked sync.WaitGroup
	defer asked.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	count, open := 0, 0
	next := func() {
		if count == len(nodes) || ctx.Err() != nil {
			return
		}
		a := answer{node: count}
		count++
		open++
		asked.Go(func() {
			a.err = repeatHungUp(ctx, func() (err error) {
				a.resp, err = nodes[a.node].Request(ctx, question())
				return err
			})
			answers <- a
		})
	}
	hedge := time.NewTicker(hedgeAfter)
	defer hedge.Stop()
	var first error
	for next(); open > 0; {
		select {
		case a := <-answers:
			open--
			heard[a.node] = true
			if a.err == nil {
				if len(known) == 0 {
					dropSilentSeeds(cl, heard[:a.node])
				}
				return a.resp, nil
			}
			if first == nil {
				first = a.err
			}
			next()
		case <-hedge.C:
			next()
		}
	}
	return nil, cmp.Or(first, kgo.ErrClientClosed)
}

// dropSilentSeeds removes from the client's seeds those that were asked before the one that
// answered and were silent, or the client's own requests would wait for each of them. The
// brokers that the cluster names take their place.
func dropSilentSeeds(cl *kgo.Client, heard []bool) {
	all, ok := cl.OptValue(kgo.SeedBrokers).([]string)
	if !ok || len(all) != len(cl.SeedBrokers()) || !slices.Contains(heard, false) {
		return
	}
	var good []string
	for i, addr := range all {
		if i >= len(heard) || heard[i] {
			good = append(good, addr)
		}
	}
	_ = cl.UpdateSeedBrokers(good...) // the client accepted these addresses before
}

// repeatHungUp repeats a request while the connection ends without an answer.
func repeatHungUp(ctx context.Context, ask func() error) error {
	for try := 1; ; try++ {
		err := ask()
		if try == hangUpTries || !hungUp(err) {
			return err
		}
		t := time.NewTimer(hangUpPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// hungUp reports whether a connection was made and ended, and the client cannot say why.
func hungUp(err error) bool {
	return err != nil && !LoginFailed(err) &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// LoginFailed reports whether the client failed in its login. It has no type for that: a
// broker that hangs up during a login has refused it.
func LoginFailed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "SASL") || strings.Contains(text, "sasl")
}
