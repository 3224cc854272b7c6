package throttle

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/transport/memory"
)

// Two words of one instant have different times: the others take only newer ones, and one
// of the two may say what is obeyed. A clock that was set back by much is followed.
//
// F-N13
func TestWordsOfOneInstantAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := NewFleet(memory.New(memory.Config{}).Broadcast("control", memory.BroadcastConfig{}), FleetConfig{Instance: "a"})
		if err != nil {
			t.Fatal(err)
		}
		said := func() (at time.Time) {
			f.member(context.Background(), &Member{}, func(_ string, raw []byte) {
				var d Directive
				if err := json.Unmarshal(raw, &d); err != nil {
					t.Error(err)
				}
				at = d.IssuedAt
			})
			return at
		}
		first, second := said(), said()
		if !second.After(first) || second.Sub(first) > time.Millisecond {
			t.Errorf("%v and then %v", first, second)
		}
		f.word = f.word.Add(time.Hour)
		if at := said(); at.Sub(first) > time.Second {
			t.Errorf("after the clock was set back it says %v", at)
		}
	})
}
