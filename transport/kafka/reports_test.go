package kafka

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// events collects them; nothing else is reported.
type events struct {
	transport.Observer
	all []transport.Event
}

func (o *events) Event(e transport.Event) { o.all = append(o.all, e) }

// An error of the client that a notice carries is the broker's, never the handler's.
//
// F-N34
func TestNoticesCarryTheBrokersCode(t *testing.T) {
	for _, err := range []error{
		kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.UnknownMemberID, kerr.GroupAuthorizationFailed,
		kgo.ErrRecordTimeout, fmt.Errorf("join: %w", kerr.RebalanceInProgress), fmt.Errorf("read: connection reset"),
	} {
		o := &events{}
		r := newReports(o)
		r.troubled("session", "not in the group", err)
		r.notice("once", err)
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(o.all) != 2 {
			t.Fatalf("%d events of 2", len(o.all))
		}
		for _, e := range o.all {
			if longshore.CodeOf(e.Err) == longshore.CodeHandler {
				t.Errorf("%v: code %s", err, longshore.CodeOf(e.Err))
			}
		}
	}
}
