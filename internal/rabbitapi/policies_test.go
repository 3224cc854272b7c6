package rabbitapi_test

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/rabbitapi"
)

type def = map[string]any

// F-N16
func TestEffectivePolicyIsTheStrongestOfEachKind(t *testing.T) {
	policies := []rabbitapi.Policy{
		{Name: "all", Pattern: ".*", ApplyTo: "all", Definition: def{"expires": 4000.0}},
		{Name: "orders", Pattern: "^orders", ApplyTo: "queues", Priority: 5, Definition: def{"max-length": 10.0, "expires": 9000.0}},
		{Name: "quorum", Pattern: "^quo", ApplyTo: "quorum_queues", Priority: 5, Definition: def{"delivery-limit": 3.0}},
		{Name: "exchanges", Pattern: ".*", ApplyTo: "exchanges", Priority: 9, Definition: def{"alternate-exchange": "x"}},
		{Name: "perl", Pattern: "^perl(?=x)", ApplyTo: "queues", Priority: 9, Definition: def{"message-ttl": 1.0}},
	}
	operator := []rabbitapi.Policy{{Pattern: "^orders$", ApplyTo: "queues", Definition: def{"expires": 6000.0}}}
	for _, c := range []struct {
		queue, kind string
		want        def
	}{
		{"orders", "classic", def{"max-length": 10.0, "expires": 6000.0, "message-ttl": nil}},
	} {
		got := rabbitapi.Effective(policies[:4], operator, c.queue, c.kind)
		for name, v := range c.want {
			if got[name] != v {
				t.Errorf("%s: %v", c.queue, got)
			}
		}
	}
	for _, c := range []struct{ queue, kind, want string }{
		{"quo", "quorum", "delivery-limit"}, {"quo", "classic", "expires"}, {"other", "classic", "expires"},
	} {
		if got := rabbitapi.Effective(policies[:4], nil, c.queue, c.kind); len(got) != 1 || got[c.want] == nil {
			t.Errorf("%s %s: %v, want %s alone", c.kind, c.queue, got, c.want)
		}
	}
	if got := rabbitapi.Effective(policies, nil, "any", "classic"); got["message-ttl"] != 1.0 {
		t.Errorf("a pattern that cannot be read counts for nothing: %v", got)
	}
}

// F-N16: of an argument and a policy RabbitMQ takes the lower one.
func TestTheLowerLimitHolds(t *testing.T) {
	for _, c := range []struct{ a, b, want any }{
		{5.0, 2.0, 2.0}, {2.0, 5.0, 2.0}, {-1.0, 2.0, 2.0}, {nil, 2.0, 2.0}, {5.0, nil, 5.0}, {"a", "b", "b"}, {-1.0, -1.0, -1.0},
	} {
		if got := rabbitapi.Lower(c.a, c.b); got != c.want {
			t.Errorf("of %v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// F-N16: each policy that reaches messages of ours is named, and which of them lose any.
func TestPoliciesAreJudgedByTheQueuesRole(t *testing.T) {
	for _, c := range []struct {
		role   rabbitapi.Role
		policy def
		lost   bool
		want   string // "" for nothing to say
	}{
		{rabbitapi.Source, def{}, false, ""},
		{rabbitapi.Source, def{"max-length": 5.0}, false, ""}, // told with the queue's own settings
		{rabbitapi.Source, def{"expires": 4000.0}, true, "4s after its last consumer has left"},
		{rabbitapi.Source, def{"max-length": 5.0, "overflow": "reject-publish"}, true, "is dropped (overflow reject-publish)"},
		{rabbitapi.Source, def{"delayed-retry-type": "all", "delayed-retry-min": 1000.0}, false, "delayed-retry"},
		{rabbitapi.DeadLetter, def{"expires": 4000.0}, true, "deleted with its dead letters after 4s"},
		{rabbitapi.DeadLetter, def{"message-ttl": 60000.0}, true, "dropped after 1m0s"},
		{rabbitapi.DeadLetter, def{"max-length": 5.0}, true, "of 5 messages the oldest dead letters"},
		{rabbitapi.DeadLetter, def{"max-length-bytes": 5.0, "overflow": "reject-publish"}, false, "takes no dead letters"},
		{rabbitapi.DeadLetter, def{"delivery-limit": 5.0}, false, ""},
		{rabbitapi.Delay, def{"expires": 4000.0}, true, "retries that wait there are deleted after 4s"},
		{rabbitapi.Delay, def{"message-ttl": 1000.0}, false, "come back after 1s"},
		{rabbitapi.Delay, def{"max-length": 5.0}, false, "come back early"},
		{rabbitapi.Delay, def{"max-length": 5.0, "overflow": "reject-publish-dlx"}, false, "takes no more retries"},
	} {
		fs := rabbitapi.Judge(c.role, "q", c.policy)
		switch {
		case c.want == "" && len(fs) == 0:
		case len(fs) != 1 || !strings.Contains(fs[0].Text, c.want) || c.want == "" || fs[0].Lost != c.lost || fs[0].Hint == "":
			t.Errorf("role %d, %v: %+v; want lost %t, %q", c.role, c.policy, fs, c.lost, c.want)
		}
	}
}
