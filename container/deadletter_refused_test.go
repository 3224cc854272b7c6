package container_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// picky is a destination that refuses some messages, each for a fault of its own.
type picky struct {
	transport.Publisher
	code longshore.Code
}

func (p picky) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	if bytes.HasPrefix(msgs[0].Body, []byte("big")) {
		return &transport.PartialError{Total: 1, Failed: map[int]error{0: &longshore.Error{Code: p.code, Op: "publish", Err: errors.New("not this one")}}}
	}
	return p.Publisher.Publish(ctx, dest, msgs...)
}

// A dead letter that its destination refuses waits for its next try alone: others go to the
// same destination at once, and no failure of theirs is reported. F-N18
func TestARefusedDeadLetterFailsNoOther(t *testing.T) {
	t.Parallel()
	for _, code := range []longshore.Code{longshore.CodeTooLarge, longshore.CodeRefused, longshore.CodeBadHeader} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			pub, err := b.Publisher(memory.PublisherConfig{})
			if err != nil {
				t.Fatal(err)
			}
			defer pub.Close(context.Background())
			var mu sync.Mutex
			failed := map[string]int{}
			c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return errBad }), container.Config{
				Workers: container.Workers{Min: 4, Max: 4}, Redelivery: always, DeadLetter: container.DeadLetter{To: "dead", Via: picky{pub, code}},
				OnEvent: func(e container.Event) {
					if e.Kind == container.EventDeadLetterFailed {
						mu.Lock()
						failed[e.Delivery.MessageID]++
						mu.Unlock()
					}
				}})
			send(t, b, "q", &longshore.Message{ID: "big", Body: []byte("big")})
			for i := range 200 {
				send(t, b, "q", &longshore.Message{ID: fmt.Sprint(i), Body: []byte("small")})
				wait(20 * time.Millisecond)
				if n := b.Inspect("dead").Published; n != uint64(i+1) {
					t.Fatalf("%s: %d of %d small ones are dead letters 20 ms later", code, n, i+1)
				}
			}
			mu.Lock()
			if failed["memory/q/1"] < 2 || len(failed) != 1 { // the first
				t.Errorf("%s: failures by message: %v, want those of the refused one alone", code, failed)
			}
			mu.Unlock()
			stop(t, c)
		})
	}
}
