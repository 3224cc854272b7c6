package breaker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// outageOfTheOnly lets the dependency of a consumer with a place to lose fail, twice,
// and calls held meanwhile. Nothing is done before it is back, then all, once and in order.
func outageOfTheOnly(t *testing.T, src transport.Source, cfg container.Config, held func()) {
	declare(t, src)
	j := newJournal()
	b := newBreaker(t, breaker.Config{Name: "ledger", OpenFor: 30 * time.Millisecond, OpenMax: 30 * time.Millisecond, Consecutive: 3, Probe: j.ping, Ramp: -1})
	cfg.Middleware, cfg.Order, cfg.Workers = []longshore.Middleware{b}, container.ByKey, container.Workers{Min: 4, Max: 4}
	c := start(t, src, j.instance("only", true), cfg)
	const rounds, each = 2, 100
	for n := range rounds {
		j.set(true)
		publishKeyed(t, src, 1+n*each, 1+(n+1)*each)
		eventually(t, "asked in vain", func() bool { return b.Status().State == breaker.Open && j.pings() > 3 })
		if st := c.Stats(); st.State != container.StatePaused {
			t.Errorf("held: %+v", st)
		}
		held()
		if done, _ := j.read(); done != n*each {
			t.Errorf("%d done, %d of them while the breaker was open", done, done-n*each)
		}
		j.set(false)
		eventually(t, "all done", func() bool { done, _ := j.read(); return done == (n+1)*each })
	}
	if st := c.Stats(); st.Generation != 1 || len(st.Reopens) != 0 {
		t.Errorf("it has subscribed anew: %+v", st)
	}
	stop(t, c)
	j.check(t, rounds*each)
}

// F-F07: an open breaker leaves an exclusive consumer its queue: another one is refused
// as before.
func TestOpenBreakerKeepsTheExclusiveQueue(t *testing.T) {
	t.Parallel()
	src := amqp.New(brokertest.AMQP(t), amqp.Config{}).Queue("ledger", amqp.QueueConfig{Exclusive: true, Declare: amqp.Declare{Type: amqp.Classic}})
	outageOfTheOnly(t, src, container.Config{}, func() {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if c, err := src.Open(ctx, transport.OpenOptions{}); !errors.Is(err, longshore.CodeExclusive) {
			t.Errorf("another consumer is not refused: %v", err)
			if err == nil {
				_ = c.Close(ctx)
			}
		}
	})
}

// F-F07: an open breaker leaves the consumer of a stream where it is: who subscribes
// anew begins at the offset of the configuration, here with what is done.
func TestOpenBreakerKeepsThePlaceInAStream(t *testing.T) {
	t.Parallel()
	src := amqp.New(brokertest.AMQP(t), amqp.Config{}).Queue("ledger", amqp.QueueConfig{
		Declare: amqp.Declare{Type: "stream"}, Arguments: amqp091.Table{"x-stream-offset": "first"}, Prefetch: 20})
	outageOfTheOnly(t, src, container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}, func() {})
}
