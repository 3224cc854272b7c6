package problem

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTextsWithGoNamesAndOthers(t *testing.T) {
	for _, c := range []struct {
		p                       *Problem
		goText, text, must, tip string
	}{
		{Range("Workers.Min", 30, "at most {Workers.Max}, which is %d", 10),
			"Workers.Min is 30, must be at most Workers.Max, which is 10", "workers.min is 30", "at most workers.max, which is 10", ""},
		{Range("Jitter", 3.5, "0 to 1{?, or -1 for none}"), "Jitter is 3.5, must be 0 to 1, or -1 for none", "jitter is 3.5", "0 to 1", ""},
		{Conflict("To", `"100% {x}"`, "{Policy}", "100% sure", "leave {To} out"),
			`To "100% {x}" does not go with Policy: 100% sure`, `to "100% {x}" does not go with policy: 100% sure`, "", "leave to out"},
		{Conflict("To", nil, "queue "+Literal(`"{To}"`), "one is enough", ""), `To does not go with queue "{To}": one is enough`, `to does not go with queue "{To}": one is enough`, "", ""},
		{Conflict("To", nil, "{Policy}", "one is enough", ""), "To does not go with Policy: one is enough", "to does not go with policy: one is enough", "", ""},
		{Required("Subject", "set {Subject}"), "Subject is not set", "subject is not set", "", "set subject"},
		{Bad("", "", "%q is no {Topic}", "a{b}"), `"a{b}" is no Topic`, `"a{b}" is no topic`, "", ""},
		{Bad("prefech", "", "is not known").In(Parameter).OfKind(UnknownName), `parameter "prefech" is not known`, `parameter "prefech" is not known`, "", ""},
		{Bad("s3/cret", "", "is not known").In(Parameter), "parameter (not shown: percent-encode a ? that belongs to a user, a password or a name) is not known",
			"parameter (not shown: percent-encode a ? that belongs to a user, a password or a name) is not known", "", ""},
		{Bad("X", "", "has a { alone"), "X has a { alone", "x has a { alone", "", ""},
	} {
		if c.p.Error() != c.goText || c.p.Text(strings.ToLower) != c.text || c.p.Must(strings.ToLower) != c.must || c.p.Hint(strings.ToLower) != c.tip {
			t.Errorf("%q, %q, %q, %q", c.p.Error(), c.p.Text(strings.ToLower), c.p.Must(strings.ToLower), c.p.Hint(strings.ToLower))
		}
	}
}

func TestListMakesTypedErrors(t *testing.T) {
	l := List{Op: `queue "orders"`, Source: "orders"}
	if l.Err() != nil || l.Len() != 0 {
		t.Error("an empty list is an error")
	}
	l.Range("Prefetch", 70000, "at most 65535")
	l.Join(nil, longshore.ErrClosed)
	err := l.Err()
	var p *Problem
	if !errors.Is(err, longshore.CodeConfig) || !errors.Is(err, longshore.ErrClosed) || !errors.As(err, &p) || p.Field != "Prefetch" || l.Len() != 2 {
		t.Errorf("%v", err)
	}
	if !strings.HasPrefix(err.Error(), `longshore: queue "orders": Prefetch is 70000, must be at most 65535`) {
		t.Errorf("%v", err)
	}
	if !p.Same(Range("Prefetch", 70000, "at most 65535")) || p.Same(Range("Prefetch", 70001, "at most 65535")) || p.Same(Required("Prefetch", "")) {
		t.Error("problems are told apart by kind, place, field and text")
	}
}
