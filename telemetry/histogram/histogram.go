package histogram

import (
	"math"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// histogram counts in whole nanoseconds: they add up without a loop and without an
// error, for 292 years of handlers' time.
type histogram struct {
	attrs  attribute.Set
	began  time.Time
	bounds []float64 // seconds, shared by the family
	edges  []int64   // the same in nanoseconds

	sum, least, most atomic.Int64
	counts           []atomic.Uint64 // one more than bounds
}

func newHistogram(bounds []float64, attrs attribute.Set) *histogram {
	h := &histogram{attrs: attrs, began: time.Now(), bounds: bounds, edges: make([]int64, len(bounds)), counts: make([]atomic.Uint64, len(bounds)+1)}
	for i, b := range bounds {
		h.edges[i] = int64(math.Round(b * float64(time.Second)))
	}
	h.least.Store(math.MaxInt64)
	h.most.Store(math.MinInt64)
	return h
}

// record counts one. Most durations are short, so the buckets are tried in turn.
func (h *histogram) record(d time.Duration) {
	n, i := int64(d), 0
	for i < len(h.edges) && n > h.edges[i] {
		i++
	}
	h.sum.Add(n)
	for v := h.least.Load(); n < v && !h.least.CompareAndSwap(v, n); v = h.least.Load() {
	}
	for v := h.most.Load(); n > v && !h.most.CompareAndSwap(v, n); v = h.most.Load() {
	}
	h.counts[i].Add(1) // last: what is counted is in the rest
}

// point is what there is now. Its count is that of its buckets; the sum may be ahead
// by what is being recorded just then.
func (h *histogram) point(now time.Time) (p metricdata.HistogramDataPoint[float64], ok bool) {
	p = metricdata.HistogramDataPoint[float64]{Attributes: h.attrs, StartTime: h.began, Time: now, Bounds: h.bounds, BucketCounts: make([]uint64, len(h.counts))}
	for i := range h.counts {
		p.BucketCounts[i] = h.counts[i].Load()
		p.Count += p.BucketCounts[i]
	}
	if p.Count == 0 {
		return p, false
	}
	p.Sum = time.Duration(h.sum.Load()).Seconds()
	p.Min = metricdata.NewExtrema(time.Duration(h.least.Load()).Seconds())
	p.Max = metricdata.NewExtrema(time.Duration(h.most.Load()).Seconds())
	return p, true
}
