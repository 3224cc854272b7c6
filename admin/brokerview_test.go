package admin

import (
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
)

// The share is measured over a minute, begins again after a restart, and says nothing of
// a few messages.
func TestShareOfArrivals(t *testing.T) {
	var a arrivals
	at := time.Unix(1000, 0)
	for _, s := range []struct {
		after               int
		received, delivered int64
		share               float64
		known               bool
	}{
		{0, 0, 0, 0, false},
		{5, 4, 8, 0, false},         // too few
		{10, 50, 100, 0.5, true},    // half of them
		{10, 60, 100, 0.5, true},    // the same answer
		{100, 50, 300, 0, true},     // nothing for more than a minute
		{105, 60, 20, 0, false},     // the broker's count began again
		{110, 100, 60, 1, true},     // all of them
		{115, 100, -1, 0, false},    // no longer counted
		{120, 3000, 3000, 0, false}, // nothing to compare with
	} {
		share, known := a.add(at.Add(time.Duration(s.after)*time.Second), s.received, s.delivered)
		if known != s.known || share != s.share {
			t.Errorf("after %d s: %v, %t, want %v, %t", s.after, share, known, s.share, s.known)
		}
	}
}

// A list that the broker does not give is explained in a line, without the name of the source
// that the viewer looks at; a failed request keeps its name. Nothing is shown where no broker of
// the kind has a list.
func TestWhyConsumersAreNotListed(t *testing.T) {
	cause := errors.New("AMQP does not list them")
	for name, like := range map[string]struct {
		err           error
		problem, help string
	}{
		"unsupported, but with a remedy": {&longshore.Error{Code: longshore.CodeUnsupported, Op: "list the consumers", Err: cause, Hint: "set the management URL"}, "AMQP does not list them", "set the management URL"},
		"failed":                         {&longshore.Error{Code: longshore.CodeTimeout, Op: "list the consumers", Err: errors.New("no response"), Hint: "check the URL"}, "list the consumers: no response", "check the URL"},
		"not typed":                      {cause, "AMQP does not list them", ""},
	} {
		if got := unlisted(like.err); got == nil || got.Problem != like.problem || got.Help != like.help {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := unlisted(&longshore.Error{Code: longshore.CodeUnsupported, Err: cause}); got != nil {
		t.Errorf("without a remedy: %+v", got)
	}
}
