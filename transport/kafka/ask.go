package kafka

import (
	"context"
	"errors"
	"io"
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

// askAny returns the first answer; the first error if nobody answers. Those that the
// cluster has told of come first: the seeds may be gone for long.
func askAny(ctx context.Context, cl *kgo.Client, req kmsg.Request) (resp kmsg.Response, first error) {
	nodes := append(cl.DiscoveredBrokers(), cl.SeedBrokers()...)
	for i, node := range nodes {
		until, cancel := ctx, context.CancelFunc(func() {})
		if i < len(nodes)-1 { // one that takes the request and is silent has not the time of the others too
			until, cancel = context.WithTimeout(ctx, answerWait)
		}
		err := insist(until, func() (err error) {
			resp, err = node.Request(until, req)
			return err
		})
		cancel()
		if err == nil {
			return resp, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if first == nil {
		first = kgo.ErrClientClosed
	}
	return nil, first
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
