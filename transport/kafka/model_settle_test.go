package kafka

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore"
)

// one is any that is out.
func (m *modelled) one() (int64, *longshore.Delivery) {
	if len(m.out) == 0 {
		m.Skip("nothing is out")
	}
	offset := rapid.SampledFrom(slices.Sorted(maps.Keys(m.out))).Draw(m.T, "offset")
	return offset, m.out[offset]
}

func (m *modelled) ack() { m.acked(m.one()) }

func (m *modelled) ackMany() {
	if len(m.out) == 0 {
		m.Skip("nothing is out")
	}
	spared := rapid.IntRange(0, 9).Draw(m.T, "spared")
	for i, offset := range slices.Sorted(maps.Keys(m.out)) {
		if i%10 != spared {
			m.acked(offset, m.out[offset])
		}
	}
}

func (m *modelled) acked(offset int64, d *longshore.Delivery) {
	if err := d.Ack(context.Background()); err != nil {
		m.Fatalf("ack of %d: %v", offset, err)
	}
	m.settled(offset, d)
	m.done[offset] = true
	delete(m.tries, offset)
	m.uncommitted++
}

func (m *modelled) settled(offset int64, d *longshore.Delivery) {
	delete(m.out, offset)
	delete(m.local, offset)
	m.late = append(m.late, d)
}

func (m *modelled) giveBack() {
	offset, d := m.one()
	m.gaveBack(offset, d)
}

func (m *modelled) gaveBack(offset int64, d *longshore.Delivery) {
	delay := rapid.SampledFrom([]time.Duration{0, 500 * time.Microsecond, 3500 * time.Microsecond, time.Minute + 500*time.Microsecond}).Draw(m.T, "delay")
	attempt := d.Attempt + rapid.IntRange(0, 1).Draw(m.T, "counted")
	if err := d.Apply(context.Background(), longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt}); err != nil {
		m.Fatalf("nack of %d: %v", offset, err)
	}
	m.settled(offset, d)
	m.tries[offset] = attempt
	m.waits[offset] = time.Now().Add(delay)
	m.due()
}

// due notes which of those that wait have waited enough.
func (m *modelled) due() {
	for offset, at := range m.waits {
		if !time.Now().Before(at) {
			delete(m.waits, offset)
			m.again[offset] = true
		}
	}
}

// retry is what a container does, which keeps the record.
func (m *modelled) retry() {
	offset, d := m.one()
	next, err := d.Again(d.Attempt + 1)
	if err != nil {
		m.Fatalf("again: %v", err)
	}
	m.late = append(m.late, d)
	m.out[offset], m.local[offset] = next, true
	m.p.checkAgain() // the watcher does
}

// settleLate settles what is settled, retried or lost: nothing happens.
func (m *modelled) settleLate() {
	if len(m.late) == 0 {
		m.Skip("nothing was settled")
	}
	d := rapid.SampledFrom(m.late).Draw(m.T, "late")
	if err := d.Ack(context.Background()); !errors.Is(err, longshore.ErrSettled) && !errors.Is(err, longshore.ErrLost) {
		m.Fatalf("late ack: %v", err)
	}
}

func (m *modelled) wait() {
	<-time.After(rapid.SampledFrom([]time.Duration{time.Millisecond, 2 * time.Minute}).Draw(m.T, "time"))
	synctest.Wait()
	m.due()
}
