package amqp

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/rabbitapi"
)

// F-N16: a retry is sent away only where no policy deletes its queue before it is due.
func TestRetriesWaitWhereNoPolicyDeletesThem(t *testing.T) {
	all := func(ms float64) []rabbitapi.Policy {
		return []rabbitapi.Policy{{Pattern: ".*", ApplyTo: "all", Definition: map[string]any{"expires": ms}}}
	}
	for _, c := range []struct {
		policies, operator []rabbitapi.Policy
		delay              time.Duration
		want               bool
	}{
		{nil, nil, time.Hour, true},
		{all(4000), nil, 9 * time.Second, false},
		{all(4000), nil, time.Second, false}, // the queue may have been declared a minute ago
		{all(61_000), nil, time.Second, false},
		{all(62_000), nil, time.Second, true},
		{all(3_600_000), nil, time.Hour, false},
		{all(3_600_000), nil, 58 * time.Minute, true},
		{all(3_600_000), all(4000), time.Minute, false},
		{[]rabbitapi.Policy{{Pattern: "^other", ApplyTo: "all", Definition: map[string]any{"expires": 1.0}}}, nil, time.Hour, true},
	} {
		s := New("amqp://h", Config{}).Queue("q", QueueConfig{})
		s.expiry.note(s.queues, c.policies, c.operator)
		if got := s.expiry.allows(c.delay); got != c.want {
			t.Errorf("%v, %v: a delay of %s may wait: %v", c.policies, c.operator, c.delay, got)
		}
	}
	s := New("amqp://h", Config{}).Queue("q", QueueConfig{})
	s.expiry.seen.Store(true)
	if s.expiry.allows(time.Second) {
		t.Error("the test queue has shown that queues expire")
	}
}

// F-N16: AMQP does not show policies. Where the management API is not set, the start says
// that they were not read, for every queue that keeps messages of ours.
func TestStartSaysWherePoliciesCannotBeRead(t *testing.T) {
	const unread = "policies on these queues cannot be read without Management"
	refusing := QueueConfig{Declare: Declare{Type: Classic, Arguments: map[string]any{"x-overflow": "reject-publish"}}}
	for name, c := range map[string]struct {
		management, dead string
		cfg              QueueConfig
		ordered          bool
		want, not        string
	}{
		"retries":           {"", "", QueueConfig{}, false, `delay queues "longshore.delay.q.*" when a retry needs one; ` + unread, "queue \"q\","},
		"dead letters":      {"", "q.dlq", QueueConfig{Declare: Declare{Type: Quorum}}, true, `queue "q", dead-letter queue "q.dlq"; ` + unread, "delay queues"},
		"they can be read":  {"http://h:15672", "q.dlq", QueueConfig{Declare: Declare{Type: Quorum}}, false, `dead-letter queue "q.dlq", delay queues`, unread},
		"no retry is sent":  {"", "", refusing, false, unread, "delay queues"},
		"nothing of ours":   {"", "", QueueConfig{}, true, "", unread},
		"a stream declared": {"", "", QueueConfig{Declare: Declare{Type: Stream}}, false, `queue "q"`, "delay queues"},
	} {
		got := New("amqp://h", Config{Management: c.management}).Queue("q", c.cfg).declared(c.dead, c.ordered)
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
