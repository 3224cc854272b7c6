package container

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// springConsumer is a transcription of SimpleMessageListenerContainer: the loop of
// AsyncMessageProcessingConsumer with receiveAndExecute and checkAdjust. It consumes
// messages that arrive at known times and says when its triggers passed.
type springConsumer struct {
	receiveTimeout             time.Duration
	batchSize                  int
	activeTrigger, idleTrigger int

	consecutiveMessages, consecutiveIdles int
	adds, stops                           []time.Duration
}

type springMessage struct {
	at, work time.Duration
	fails    bool
}

func (c *springConsumer) run(queue []springMessage, end time.Duration) {
	for now := time.Duration(0); now < end; {
		receivedOk, thrown := false, false
		for i := 0; i < c.batchSize; i++ { // doReceiveAndExecute
			if len(queue) == 0 || queue[0].at >= now+c.receiveTimeout { // nextMessage(receiveTimeout) == null
				now += c.receiveTimeout
				break
			}
			m := queue[0]
			queue = queue[1:]
			now = max(now, m.at) + m.work
			if m.fails {
				thrown = true
				break
			}
			receivedOk = true
		}
		if !thrown {
			c.checkAdjust(receivedOk, now)
		}
	}
}

func (c *springConsumer) checkAdjust(receivedOk bool, now time.Duration) {
	if receivedOk {
		c.consecutiveIdles = 0
		before := c.consecutiveMessages // consecutiveMessages++ > consecutiveActiveTrigger
		c.consecutiveMessages++
		if before > c.activeTrigger {
			c.adds = append(c.adds, now)
			c.consecutiveMessages = 0
		}
		return
	}
	c.consecutiveMessages = 0
	before := c.consecutiveIdles
	c.consecutiveIdles++
	if before > c.idleTrigger {
		c.stops = append(c.stops, now)
		c.consecutiveIdles = 0
	}
}

// The worker's count agrees with the transcription: on a table of patterns and on random
// arrivals, looked at in ticks of 500 ms.
func TestCyclesAreSprings(t *testing.T) {
	every := func(n int, d, work time.Duration) (q []springMessage) {
		for i := range n {
			q = append(q, springMessage{at: time.Duration(i+1) * d, work: work})
		}
		return q
	}
	failing := every(40, 100*time.Millisecond, time.Millisecond)
	for i := range failing {
		failing[i].fails = true
	}
	const s, ms = time.Second, time.Millisecond
	for name, tc := range map[string]struct {
		queue                []springMessage
		batch                int
		end                  time.Duration
		wantActive, wantIdle int
	}{
		"nothing for 12 receives":                   {nil, 1, 12*s + 1, 0, 1},
		"and not after 11":                          {nil, 1, 11*s + 1, 0, 0},
		"a message within each receive":             {every(12, 900*ms, ms), 1, 11 * s, 1, 0},
		"eleven of them":                            {every(11, 900*ms, ms), 1, 11 * s, 0, 0},
		"24 of them trip twice":                     {every(24, 900*ms, ms), 1, 22 * s, 2, 0},
		"full batches":                              {every(120, 50*ms, ms), 10, 7 * s, 1, 0},
		"a partial batch is an active cycle":        {every(12, 1500*ms, ms), 10, 26 * s, 1, 0},
		"one idle receive between messages":         {every(30, 1900*ms, ms), 1, 60 * s, 0, 0},
		"failures count for nothing":                {failing, 1, 5 * s, 0, 0},
		"after failures the idle count is complete": {failing, 1, 16*s + 500*ms, 0, 1},
	} {
		t.Run(name, func(t *testing.T) { compareCycles(t, tc.queue, tc.batch, tc.end, tc.wantActive, tc.wantIdle) })
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q []springMessage
		mean := time.Duration(1+r.IntN(3000)) * ms
		for at := time.Duration(0); at < 5*time.Minute; {
			at += time.Duration(r.Int64N(int64(2*mean))) + 1
			q = append(q, springMessage{at: at, work: time.Duration(r.Int64N(int64(300 * ms))), fails: r.IntN(20) == 0})
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { compareCycles(t, q, 1+r.IntN(4), 5*time.Minute, -1, -1) })
	}
}

func compareCycles(t *testing.T, queue []springMessage, batch int, end time.Duration, wantActive, wantIdle int) {
	t.Helper()
	java := &springConsumer{receiveTimeout: time.Second, batchSize: batch, activeTrigger: 10, idleTrigger: 10}
	java.run(queue, end)
	set := autoscale.Spring{BatchSize: batch}.Cycles()
	t0 := time.Unix(1000, 0)
	var c consumerCycles
	var got tripped
	add := func(x tripped) { got.active, got.idle = got.active+x.active, got.idle+x.idle }
	c.elapse(t0, &set)
	now, tick := time.Duration(0), time.Duration(0)
	ticks := func(until time.Duration) {
		for ; tick <= until; tick += 500 * time.Millisecond {
			add(c.elapse(t0.Add(tick), &set))
		}
	}
	for _, m := range queue {
		if now = max(now, m.at); now >= end {
			break
		}
		ticks(now)
		add(c.begins(t0.Add(now), &set))
		now += m.work
		add(c.ends(t0.Add(now), m.fails, &set))
	}
	ticks(end)
	count := func(at []time.Duration) (n int) {
		for _, x := range at {
			if x <= max(now, tick-500*time.Millisecond) {
				n++
			}
		}
		return n
	}
	if a, i := count(java.adds), count(java.stops); got.active != a || got.idle != i {
		t.Errorf("%d active and %d idle triggers, the transcription has %d and %d", got.active, got.idle, a, i)
	}
	if wantActive >= 0 && (got.active != wantActive || got.idle != wantIdle) {
		t.Errorf("%d active and %d idle triggers, want %d and %d", got.active, got.idle, wantActive, wantIdle)
	}
}
