package amqp

import (
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
		s.noteExpiry(s.queues, c.policies, c.operator)
		if got := s.mayWait(c.delay); got != c.want {
			t.Errorf("%v, %v: a delay of %s may wait: %v", c.policies, c.operator, c.delay, got)
		}
	}
	s := New("amqp://h", Config{}).Queue("q", QueueConfig{})
	s.expires.Store(true)
	if s.mayWait(time.Second) {
		t.Error("the test queue has shown that queues expire")
	}
}
