package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport/kafka/internal/share"
)

// A record that was done and then failed again, under the same place (its topic was read again),
// is not forgotten with its former entry.
func TestShareAttemptsForgetTheOldestOnly(t *testing.T) {
	a := newShareAttempts()
	rec := func(n int64) *share.Record { return &share.Record{Record: &kgo.Record{Offset: n}, Deliveries: 2} }
	a.next(rec(0), 2)
	a.forget(rec(0))
	for i := int64(1); i < maxShareHistories-1; i++ {
		a.next(rec(i), 2)
	}
	a.next(rec(0), 3)                   // its second entry; the memory is full
	a.next(rec(maxShareHistories+1), 2) // pushes out the first
	if got := a.of(rec(0)); got != 3 {
		t.Errorf("attempt %d of a record that failed lately, want 3", got)
	}
	a.next(rec(maxShareHistories+2), 2)
	if got := a.of(rec(1)); got != 1 {
		t.Errorf("attempt %d of the oldest record, want it forgotten", got)
	}
	if len(a.order) > maxShareHistories || len(a.known) > maxShareHistories {
		t.Errorf("%d entries of %d records", len(a.order), len(a.known))
	}
}
