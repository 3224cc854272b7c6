package kafka

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// link notes when brokers have answered: it is a hook of the client. It compares monotonic
// times: a clock that was put back by an hour would hide for as long that the cluster is
// away.
type link struct {
	last    atomic.Pointer[time.Time] // the last answer of any broker
	refused atomic.Pointer[error]     // why the last failed dial failed
	leaders sync.Map                  // int32 → time.Time: when each broker answered last for its logs
	beat    atomic.Pointer[time.Time] // the last answer to a heartbeat of a KIP-848 group
}

// answered notes that a broker has answered, from whichever goroutine saw it.
func (l *link) answered() {
	now := time.Now()
	l.last.Store(&now)
}

// silence is for how long no broker has answered.
func (l *link) silence() time.Duration {
	if last := l.last.Load(); last != nil {
		return time.Since(*last)
	}
	return 0
}

// leaderSilence is for how long a broker has not answered for its logs; the second is false
// if it never has.
func (l *link) leaderSilence(id int32) (time.Duration, bool) {
	at, _ := l.leaders.Load(id)
	last, ok := at.(time.Time)
	if !ok {
		return 0, false
	}
	return time.Since(last), true
}

// OnBrokerRead implements [kgo.HookBrokerRead].
func (l *link) OnBrokerRead(m kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err != nil {
		return
	}
	l.answered()
	switch now := time.Now(); key {
	case int16(kmsg.Fetch), int16(kmsg.ListOffsets):
		l.leaders.Store(m.NodeID, now)
	case int16(kmsg.ConsumerGroupHeartbeat):
		l.beat.Store(&now)
	}
}

// OnBrokerConnect implements [kgo.HookBrokerConnect].
func (l *link) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		l.refused.Store(&err)
	}
}
