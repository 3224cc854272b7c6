package kafka

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A connection may end before the answer is read, which then says nothing: a broker that
// refuses a login tells why and hangs up, and the end can overtake the reason. So a first
// request is made again, a few times: the reason is worth more than a fast "unreachable".
const (
	askTries = 3
	askPause = 50 * time.Millisecond
)

// hedgeAfter is how long one node has the question for itself. One that takes it and is
// silent must not have the time of the others too.
const hedgeAfter = 500 * time.Millisecond

// askAny returns the first answer; the first error if nobody answers. Those that the
// cluster has told of come first: the seeds may be gone for long. question makes it,
// for each node its own: the client writes into it.
func askAny(ctx context.Context, cl *kgo.Client, question func() kmsg.Request) (kmsg.Response, error) {
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
			a.err = insist(ctx, func() (err error) {
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
					passOver(cl, heard[:a.node])
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

// passOver takes out of the client's seeds those that were asked before the one that
// answered and were silent. Until it knows the cluster it takes one seed after the other,
// and waits 10 s for each. What the cluster tells of itself comes in their place.
func passOver(cl *kgo.Client, heard []bool) {
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
	_ = cl.UpdateSeedBrokers(good...) // they were good enough before
}

// answers tells whether anybody does.
func answers(ctx context.Context, cl *kgo.Client) error {
	_, err := askAny(ctx, cl, func() kmsg.Request {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{} // none: that is the shortest
		return req
	})
	return err
}

// insist asks again while the connection ends without an answer.
func insist(ctx context.Context, ask func() error) error {
	for try := 1; ; try++ {
		err := ask()
		if try == askTries || !hungUp(err) {
			return err
		}
		t := time.NewTimer(askPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// hungUp: the connection was there and ended, and the client cannot tell why.
func hungUp(err error) bool {
	return err != nil && !loginFailed(err) &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}
