package dispatch

import (
	"strconv"
	"testing"
	"time"
)

// The Scheduler's share of a message: admit, start and finish one, with 64 in hand.
func BenchmarkMessage(b *testing.B) {
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = "customer-" + strconv.Itoa(i)
	}
	for _, bc := range []struct {
		name string
		key  func(*load) ([]byte, bool)
	}{
		{"unordered", nil},
		{"100 keys", func(l *load) ([]byte, bool) { return []byte(l.key), true }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			s := New(Limits{Bytes: 1 << 30, Retries: 1000, Aside: 1000}, bc.key)
			var owner Owner
			loads := make([]load, 64)
			out := make([]*Item[load], 0, 1)
			admit := func(l *load, i int) {
				l.key = keys[i%len(keys)]
				l.Fill(l, &owner, 100)
				s.Admit(&l.Item)
			}
			for i := range loads {
				admit(&loads[i], i)
			}
			for i := 0; b.Loop(); i++ {
				out = s.Next(1, out[:0])
				if s.Free(128) <= 0 {
					b.Fatal("no room")
				}
				l := out[0].Of
				s.Finish(out[0])
				admit(l, i)
			}
		})
	}
}

// A retry: park, wake, start and finish one, among 64 that are parked.
func BenchmarkRetry(b *testing.B) {
	b.ReportAllocs()
	s := New(Limits{Bytes: 1 << 30, Retries: 1000, Aside: 1000}, func(l *load) ([]byte, bool) { return []byte(l.key), true })
	var owner Owner
	loads := make([]load, 64)
	var out []*Item[load]
	now := time.Unix(0, 0)
	for i := range loads {
		l := &loads[i]
		l.key = strconv.Itoa(i)
		l.Fill(l, &owner, 100)
		s.Admit(&l.Item)
		out = s.Next(1, out[:0])
		s.Park(out[0], now.Add(time.Duration(i)))
	}
	for b.Loop() {
		at, _ := s.NextDue()
		s.Wake(at)
		out = s.Next(1, out[:0])
		s.Park(out[0], at.Add(64))
	}
}
