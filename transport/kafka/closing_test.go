package kafka_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// F-A05: a member closes whose coordinator does not answer, or whose link is cut, whether
// or not the group had let it in. Close returns with its context, and neither the
// consumer nor its client leaves anything running.
func TestCloseWithoutACoordinator(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		join := map[kafka.Protocol]kmsg.Key{kafka.Classic: kmsg.JoinGroup, kafka.Consumer: kmsg.ConsumerGroupHeartbeat}[p]
		for name, from := range map[string]silence{
			"a member": {member: true}, "a member, its link cut": {member: true, cut: true},
			"looking for the coordinator": {key: kmsg.FindCoordinator, after: 1}, // the first is Open's
			"joining":                     {key: join}, "joining, its link cut": {key: join, cut: true},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				closeInSilence(t, p, from)
			})
		}
	})
}

// silence is when a coordinator falls silent: when the member has its records, or at a
// request of its joining.
type silence struct {
	member bool
	key    kmsg.Key
	after  int32 // so many are answered
	cut    bool  // and no other broker answers either
}

func closeInSilence(t *testing.T, p kafka.Protocol, from silence) {
	t.Helper()
	c := embeddedCluster(t, 1)
	c.produce(0, 3, 1, 0)
	mute, muted := c.muting(from)
	proxy := faultproxy.New(t, c.addrs[0])
	b := kafka.New(c.addrs, kafka.Config{Options: []kgo.Opt{proxied(proxy), kgo.HeartbeatInterval(200 * time.Millisecond)}})
	var m *member
	running := labelled(t, func() {
		m = open(t, b.Group("g", []string{"orders"}, kafka.GroupConfig{Protocol: p, SettleLinger: time.Hour}))
	})
	if from.member {
		ds := m.take(3)
		mute()
		ack(t, ds...)
	}
	select {
	case <-muted:
	case <-time.After(patience):
		t.Fatal("the coordinator was not asked")
	}
	proxy.BlackHole(from.cut)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	var err error
	closing := labelled(t, func() { err = m.Close(ctx) })
	if took := time.Since(began); took > patience/2 {
		t.Errorf("Close took %s", took)
	}
	eventually(t, "nothing of the client runs", func() bool { return running()+closing() == 0 })
	if _, failed, _ := m.counts(); from.member && (failed != 3 || longshore.CodeOf(err) == "") {
		t.Errorf("%d acks reported as not committed, want 3; Close: %v", failed, err)
	}
	proxy.BlackHole(false)
}

// muting is a coordinator that stops to answer, of itself or by mute; muted tells that it
// has left a request without an answer.
func (c *cluster) muting(from silence) (mute func(), muted <-chan struct{}) {
	var silent atomic.Bool
	var seen atomic.Int32
	told := make(chan struct{}, 1)
	c.fake.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.fake.KeepControl()
		key := kmsg.Key(r.Key())
		switch key {
		case kmsg.FindCoordinator, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.LeaveGroup, kmsg.Heartbeat, kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.ConsumerGroupHeartbeat:
		default:
			return nil, nil, false
		}
		if !from.member && key == from.key && seen.Add(1) > from.after {
			silent.Store(true)
		}
		if !silent.Load() {
			return nil, nil, false
		}
		select {
		case told <- struct{}{}:
		default:
		}
		return nil, nil, true
	})
	return func() { silent.Store(true) }, told
}

// labelled does something and returns how many goroutines that it started, or that those
// started, still run.
func labelled(t *testing.T, do func()) func() int {
	t.Helper()
	mark := transporttest.Name(t)
	pprof.Do(t.Context(), pprof.Labels("started by", mark), func(context.Context) { do() })
	return func() int {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			t.Fatal(err)
		}
		return bytes.Count(all.Bytes(), []byte(mark))
	}
}
