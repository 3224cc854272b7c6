package kafka

import "sync/atomic"

// What waits in memory is bounded by bytes. Nothing is polled while all partitions have
// enough, or have much together. If one has little, those that have much are held back and
// not fetched while the others go on. The steps are wide, because the client discards what
// it has of a partition that is held back.
const (
	muchBytes   = 8 << 20  // a partition is held back above it
	littleBytes = 2 << 20  // and is fetched again below it
	totalBytes  = 64 << 20 // nothing is polled above it
)

// fetching is the part of the client that holds partitions back.
type fetching interface {
	PauseFetchPartitions(map[string][]int32) map[string][]int32
	ResumeFetchPartitions(map[string][]int32)
}

// flow is the account of what waits in all partitions of a consumer, between them and the
// poller.
type flow struct {
	client  fetching      // set once, before anything is fetched
	waiting atomic.Int64  // bytes in partitions that can hand out
	needed  chan struct{} // wakes the poller: there is room, or a partition needs records
}

// add counts bytes that wait in a partition which can hand them out.
func (f *flow) add(n int64) { f.waiting.Add(n) }

// remove counts bytes that no longer wait. The poller wakes only when the total crosses
// its limit.
func (f *flow) remove(n int64) {
	if all := f.waiting.Add(-n); all < totalBytes && all+n >= totalBytes {
		signal(f.needed)
	}
}

// full reports whether all partitions together have enough.
func (f *flow) full() bool { return f.waiting.Load() >= totalBytes }

// wake lets the poller look again.
func (f *flow) wake() { signal(f.needed) }

// hold keeps the client from fetching a partition.
func (f *flow) hold(at tp) {
	f.client.PauseFetchPartitions(map[string][]int32{at.Topic: {at.Num}})
}

// resume lets it fetch the partition again. The client keeps a hold until it is lifted.
func (f *flow) resume(at tp) {
	f.client.ResumeFetchPartitions(map[string][]int32{at.Topic: {at.Num}})
}
