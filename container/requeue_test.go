package container

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// settles is a broker that does something during each ack.
type settles struct {
	ack func() error
}

func (s settles) Ack(context.Context, uint64) error                    { return s.ack() }
func (settles) Nack(context.Context, uint64, time.Duration, int) error { return nil }
func (settles) Reject(context.Context, uint64, error) error            { return nil }
func (settles) Extend(context.Context, uint64, time.Duration) error    { return nil }

// A delivery that the broker takes back while its ack is on the way is lost for its lane:
// the next delivery of the message comes behind it and is no follower of it, whatever the
// ack returns in the end.
func TestLossDuringTheAckIsSeenByTheLane(t *testing.T) {
	var it item
	running := func() {
		s := dispatch.New[item](dispatch.Limits{Bytes: 1 << 20}, func(*item) ([]byte, bool) { return []byte("k"), true })
		it.Fill(&it, &dispatch.Owner{}, 1)
		s.Admit(&it.Item)
		s.Next(1, nil)
	}
	for name, tc := range map[string]struct {
		loses, want bool
		result      error
	}{
		"settled":                         {},
		"refused":                         {result: longshore.ErrSettled},
		"lost, and the ack came too late": {loses: true, result: longshore.ErrLost, want: true},
		"lost, and the ack came in time":  {loses: true, want: true},
		"lost, and the broker is out":     {loses: true, result: errors.New("away"), want: true},
	} {
		it = item{}
		running()
		during := false
		it.d = longshore.NewDelivery(context.Background(), settles{func() error {
			if tc.loses {
				it.d.Lose(longshore.ErrLost)
			}
			during = isLost(&it)
			return tc.result
		}}, 1)
		_ = it.d.Apply(context.Background(), longshore.Settlement{Verb: longshore.VerbAck})
		if after := isLost(&it); during != tc.want || after != tc.want {
			t.Errorf("%s: lost during the ack %v, after it %v", name, during, after)
		}
	}
}
