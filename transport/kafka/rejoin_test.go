package kafka_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A member asks to join again after the group has removed it: the answer to its last
// heartbeat was "rebalance", and only the join says that nobody knows it any more. Another
// member has done its partitions meanwhile. What it had in hand is lost, it commits nothing
// of it, and it goes on where the other is.
func TestJoinOfARemovedMemberEndsItsAssignment(t *testing.T) {
	t.Parallel()
	const each = 50 // of two partitions
	f := fake(t, kfake.SeedTopics(2, "orders"), kfake.GroupMinSessionTimeout(time.Second))
	c := &cluster{addrs: f.ListenAddrs(), fake: f, topic: "orders", t: t}
	c.produce(0, each, 7, 0)
	c.produce(each, 2*each, 7, 1)
	h := &heartbeats{}
	f.ControlKey(kmsg.Heartbeat.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		f.KeepControl()
		resp := h.answer(req.(*kmsg.HeartbeatRequest)) //nolint:errcheck // of this key
		return resp, nil, resp != nil
	})
	src := c.group(kafka.GroupConfig{SessionTimeout: time.Second, SettleLinger: 50 * time.Millisecond})
	first := open(t, src)
	held := first.take(2 * each)
	ack(t, held[:20]...)
	eventually(t, "a part is committed", func() bool { return c.sum() > 0 })

	h.set(withheld) // the group removes it
	second := open(t, src)
	ack(t, second.take(2*each-int(c.sum()))...)
	eventually(t, "all is committed by the second", func() bool { return c.sum() == 2*each })

	var all sync.WaitGroup
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); all.Wait() })
	all.Go(func() { // handlers of the first end, and it commits what they did
		for _, d := range held[20:] {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				_ = d.Ack(t.Context())
			}
		}
	})
	h.set(rebalance) // and says so only when it joins
	eventually(t, "both are members", func() bool {
		if sum := c.sum(); sum < 2*each {
			t.Fatalf("committed went back to %d of %d", sum, 2*each)
		}
		return c.groupState() == "Stable 2"
	})
	for _, d := range held[20:] {
		if d.Owned() {
			t.Fatalf("record %s is still this member's", d.Body)
		}
	}
	c.produce(2*each, 2*each+10, 7, 0)
	c.produce(2*each+10, 2*each+20, 7, 1)
	var got []int
	var mu sync.Mutex
	var takes sync.WaitGroup
	for _, m := range []*member{first, second} {
		takes.Go(func() {
			ds := m.take(10)
			mu.Lock()
			defer mu.Unlock()
			for _, d := range ds {
				num, _ := strconv.Atoi(string(d.Body))
				got = append(got, num)
			}
			ack(t, ds...)
		})
	}
	takes.Wait()
	slices.Sort(got)
	for i, num := range got {
		if num != 2*each+i {
			t.Fatalf("record %d came again", num)
		}
	}
	eventually(t, "the rest is committed", func() bool { return c.sum() == 2*each+20 })
	if err := held[2*each-1].Ack(t.Context()); err != longshore.ErrLost { //nolint:errorlint // it is
		t.Errorf("ack: %v", err)
	}
}

// heartbeats answers those of the first member.
type heartbeats struct {
	mu    sync.Mutex
	of    string // its id
	state int
}

const (
	real      = iota // the group answers
	withheld         // they do not reach the group, and the member does not notice
	rebalance        // the next is told to join, as others do
)

func (h *heartbeats) set(state int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state = state
}

// answer returns nil where the group answers.
func (h *heartbeats) answer(r *kmsg.HeartbeatRequest) kmsg.Response {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == "" {
		h.of = r.MemberID
	}
	if h.state == real || r.MemberID != h.of {
		return nil
	}
	resp := r.ResponseKind().(*kmsg.HeartbeatResponse) //nolint:errcheck // of this key
	if h.state == rebalance {
		resp.ErrorCode = kerr.RebalanceInProgress.Code
		h.state = real
	}
	return resp
}
