package amqp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
)

// Consumers are added and cancelled one by one: the idlest first, of equals the newest, and
// the one that leads last.
func TestNextChangeOfConsumers(t *testing.T) {
	for name, like := range map[string]struct {
		wanted    int
		unsettled []int
		want      change
	}{
		"the first":          {3, nil, change{add: true, cancel: -1}},
		"one more":           {3, []int{0, 1}, change{add: true, cancel: -1}},
		"enough":             {3, []int{0, 1, 0}, change{cancel: -1}},
		"the idle one":       {2, []int{1, 0, 1, 1}, change{cancel: 1}},
		"the least busy":     {1, []int{9, 7, 3, 5}, change{cancel: 2}},
		"the newest of many": {1, []int{0, 0, 0}, change{cancel: 2}},
		"not the lead":       {1, []int{0, 4}, change{cancel: 1}},
		"none at all":        {0, []int{2}, change{cancel: 0}},
	} {
		if got := nextChange(like.wanted, like.unsettled); got != like.want {
			t.Errorf("%s: %+v, want %+v", name, got, like.want)
		}
	}
}

// A resize that failed for some consumers goes to all of them the next time, also when it is
// the earlier one again: those that followed the failed one are shut.
func TestFailedResizeGoesToAllAgain(t *testing.T) {
	c := crew{live: []*crewMember{{}, {}}}
	if n := len(c.follow(false)); n != 0 {
		t.Errorf("%d consumers learn what they know", n)
	}
	if n := len(c.follow(true)); n != 2 {
		t.Errorf("%d of 2 consumers learn that the intake is shut", n)
	}
	c.answered(errors.New("one of them failed"))
	if n := len(c.follow(false)); n != 2 || c.shut {
		t.Errorf("%d of 2 consumers learn that the intake is open again after a failure", n)
	}
	if n := len(c.follow(false)); n != 0 {
		t.Errorf("%d consumers learn it twice", n)
	}
}

// Whoever ends a consumer that ends by itself at that moment comes back when its losses have
// been reported: what stands for several consumers reports their end after that.
func TestSecondFailureWaitsForTheLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &heardLosses{}
		n := notify.New(heard)
		c := &consumer{src: &Queue{}, notices: n, halt: func() {}, reported: make(chan struct{}), held: newDeliveries(&QueueConfig{}, returnRules{}, &returnLimits{}, n, false),
			writer: &settleWriter{quit: make(chan struct{}), left: make(chan struct{})}}
		c.held.arrive(1, longshore.NewDelivery(context.Background(), nil, 1), &amqp091.Delivery{}, 0)
		if ds, _ := c.held.take(1); len(ds) != 1 {
			t.Fatalf("%d of 1 delivery is handed out", len(ds))
		}
		go c.fail(errors.New("the connection ended"))
		synctest.Wait() // it waits for the writer, which is in a call
		second := make(chan struct{})
		go func() { defer close(second); c.fail(errors.New("another one ended")) }()
		synctest.Wait()
		select {
		case <-second:
			t.Error("it came back before the losses were reported")
		default:
		}
		close(c.writer.left)
		<-second
		if err := n.Wait(t.Context()); err != nil || heard.lost != 1 {
			t.Errorf("%d losses reported, %v", heard.lost, err)
		}
	})
}

type heardLosses struct{ lost int }

func (h *heardLosses) Lost(ds []*longshore.Delivery, _ error) { h.lost += len(ds) }

func (*heardLosses) SettleFailed(*longshore.Delivery, longshore.Settlement, error) {}

func (*heardLosses) Down(error) {}

func (*heardLosses) Event(transport.Event) {}
