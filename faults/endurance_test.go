package faults

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	enduranceSize       = 10_000           // bytes of a message
	poisonEvery         = 1000             // one in so many cannot be decoded
	longestStill        = 30 * time.Second // without a handled order while some wait
	enduranceBatch      = 100
	endurancePublishers = 4
)

// endurance is one run of the README's program against n numbered messages.
type endurance struct {
	t       *testing.T
	b       enduranceBroker
	n       int
	padding string // random, so that no compression makes the messages small
	child   *readmeProcess
}

// await waits until all are handled and the poison is in its place, as long as
// something happens.
func (e *endurance) await(publishing <-chan error) (ok bool) {
	e.t.Helper()
	poison := (e.n + poisonEvery/2 - 1) / poisonEvery
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	began, all := time.Now(), false
	for idle, round := time.Now(), 1; ; round++ {
		select {
		case err := <-publishing:
			if err != nil {
				e.t.Error(err)
				return false
			}
			publishing, all, idle = nil, true, time.Now()
		case <-tick.C:
		}
		left, waited := e.child.progress()
		switch {
		case waited > longestStill, all && left == 0 && time.Since(idle) > 2*longestStill:
			e.t.Errorf("after %v: %d orders are not handled, and nothing happened for %v; %d are left at the broker, %d dead letters of %d",
				time.Since(began).Round(time.Second), left, max(waited, time.Since(idle)).Round(time.Second), e.b.left(), e.b.died(), poison)
			return false
		case all && left == 0:
			if e.b.left() == 0 && e.b.died() >= poison {
				return true
			}
		default:
			idle = time.Now()
		}
		if round%10 == 0 {
			e.b.trim()
		}
		if round%120 == 0 {
			e.t.Logf("%v: %d orders handled, %d MB", time.Since(began).Round(time.Second), e.child.handledSoFar(), e.child.peak())
		}
	}
}

// compare returns which numbers were in no handler, or in no dead-letter destination.
func (e *endurance) compare() (lost, twice, dead int) {
	e.t.Helper()
	poison := make([]bool, e.n)
	for _, body := range e.b.dead((e.n + poisonEvery/2 - 1) / poisonEvery) {
		var i int
		if _, err := fmt.Sscanf(body, "poison %d ", &i); err != nil || i >= e.n || !isPoison(i) {
			e.t.Errorf("a dead letter is no poison: %.40q", body)
			continue
		}
		poison[i] = true
		dead++
	}
	var first []int
	for i, calls := range e.child.calls {
		if calls > 1 {
			twice++
		}
		if (calls > 0) != isPoison(i) && poison[i] == isPoison(i) {
			continue
		}
		if lost++; lost <= 10 {
			first = append(first, i)
		}
	}
	if lost > 0 {
		e.t.Errorf("%d messages are neither handled nor where dead letters are, or both: %v …", lost, first)
	}
	return lost, twice, dead
}

// feed publishes until all is done, or nothing happens any more.
func (e *endurance) feed() (ok bool) {
	e.t.Helper()
	done, result := make(chan struct{}), make(chan error, 1)
	var publishing sync.WaitGroup
	publishing.Go(func() { result <- e.publish(done) })
	defer publishing.Wait()
	defer close(done)
	return e.await(result)
}

func (e *endurance) run(row *strings.Builder) {
	e.t.Helper()
	program := programFor(e.t, e.b.kind, e.b.addr, e.b.name)
	e.child = startReadme(e.t, build(e.t, program), e.n)
	eventually(e.t, time.Minute, "the program has declared what it consumes from", e.b.declared)
	began := time.Now()
	ok := e.feed()
	took, peak := time.Since(began), e.child.peak()
	e.child.stop()
	if left := e.b.left(); ok && left != 0 {
		e.t.Errorf("after the stop %d messages are left at the broker", left)
	}
	lost, twice, dead := e.compare()
	c := e.child
	if most := max(c.heap[0].most, c.heap[1].most); most > e.b.heap {
		e.t.Errorf("the live heap was %d MB, want at most the %d MB that the documentation adds up to", most, e.b.heap)
	}
	// What leaks is left at the bottom: how full buffers are is at the top.
	if c.heap[1].least > c.heap[0].least+32 {
		e.t.Errorf("the live heap grew: it came down to %d MB in the first half, to %d MB in the second", c.heap[0].least, c.heap[1].least)
	}
	fmt.Fprintf(row, "%s\t%d\t%.0f/s\t%v, %v MB\t%d MB\t%v\t%d\t%d\t%d\t%d\t%d\n", e.b.kind, e.n, float64(e.n)/took.Seconds(), c.heap[0], c.heap[1], peak,
		c.still.Round(time.Millisecond), dead, c.most, c.again, twice, lost)
}

// The README's first program, as it stands there, against numbered messages of 10 KB on
// each broker, one in a thousand of which cannot be decoded: its heap is bounded, it
// never stands still, nothing is lost, the poison is where dead letters are. Hours long
// with a million messages, so it runs by `make endurance`.
func TestEndurance(t *testing.T) {
	v := os.Getenv("LONGSHORE_ENDURANCE")
	if v == "" {
		t.Skip("not run here: set LONGSHORE_ENDURANCE to a number of messages and start the brokers (make endurance)")
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < poisonEvery {
		t.Fatalf("LONGSHORE_ENDURANCE is %q, want a number of messages, at least %d", v, poisonEvery)
	}
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(rand.Uint32()) //nolint:gosec // padding
	}
	padding := base64.RawStdEncoding.EncodeToString(random)
	var rows strings.Builder
	for _, leg := range []struct {
		name string
		on   func(*testing.T) enduranceBroker
	}{{"rabbitmq", enduranceOnRabbitMQ}, {"kafka", enduranceOnKafka}, {"sqs", enduranceOnSQS}} {
		t.Run(leg.name, func(t *testing.T) { (&endurance{t: t, b: leg.on(t), n: n, padding: padding}).run(&rows) })
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "broker\tmessages\trate\tlive heap by half\tresident\tstillest\tdead letters\tmost waiting\tanother attempt\ttwice\tlost\n", rows.String())
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d messages of %d bytes on each broker\n%s", n, enduranceSize, table.String())
}
