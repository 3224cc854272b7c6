package telemetry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport"
)

// F-L02: codes that a handler makes of whatever it meets, and a destination for each
// reply, share one label from some number on. What came before keeps its own.
func TestCodesAndDestinationsOfTheUserAreBounded(t *testing.T) {
	r := newRig(t)
	c := r.container(t, func(_ context.Context, d *longshore.Delivery) error {
		if d.ID == "ours" {
			return longshore.Reject(&longshore.Error{Code: longshore.CodeUndecodable})
		}
		return longshore.Reject(&longshore.Error{Code: longshore.Code("code-" + d.ID)})
	}, container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}})
	stop, err := r.tel.Observe(c)
	if err != nil {
		t.Fatal(err)
	}
	pub := r.tel.Publisher("memory", taker{})
	pass := func(from int) (codes, places int) {
		for i := from; i < from+600; i++ {
			containertest.PublishMessages(t, c, &longshore.Message{ID: fmt.Sprint(i)})
			if err := pub.Publish(t.Context(), fmt.Sprint("reply-", i), &longshore.Message{}); err != nil {
				t.Fatal(err)
			}
		}
		containertest.WaitIdle(t, c)
		other := 0
		for _, p := range r.points(t) {
			switch {
			case strings.HasPrefix(p, "messaging.process.duration error.type="):
				codes++
			case strings.HasPrefix(p, "messaging.client.sent.messages messaging.destination.name="):
				places++
			}
			if strings.Contains(p, "_OTHER") {
				other++
			}
		}
		if other != 3 { // duration of the handler and of publishing, messages sent
			t.Errorf("%d series of all others", other)
		}
		return codes, places
	}
	for i := range 2 {
		if codes, places := pass(i * 600); codes < 100 || codes > 120 || places != 501 {
			t.Errorf("%d codes, %d destinations", codes, places)
		}
	}
	containertest.PublishMessages(t, c, &longshore.Message{ID: "ours"}) // a late one keeps its name
	containertest.WaitIdle(t, c)
	wantPoint(t, r.points(t), "messaging.process.duration error.type=undecodable messaging.destination.name=orders messaging.operation.name=process messaging.system=memory 1")
	if n := len(c.Stats().DeadLetters); n > 101 {
		t.Errorf("%d reasons in the statistics", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// taker is a publisher that takes all.
type taker struct{ transport.Publisher }

func (taker) Publish(context.Context, string, ...*longshore.Message) error { return nil }
