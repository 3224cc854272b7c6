package queue_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/examples/extend/queue"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Quiet:  20 * time.Millisecond,
		Source: func(testing.TB) transport.Source { return queue.New() },
		Publish: func(t testing.TB, src transport.Source, msgs ...*longshore.Message) {
			q, ok := src.(*queue.Queue)
			if !ok {
				t.Fatalf("a source of kind %T", src)
			}
			q.Put(msgs...)
		},
	})
}
