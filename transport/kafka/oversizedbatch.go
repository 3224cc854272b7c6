package kafka

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
)

// OversizedBatch is what happens to a compressed batch that would unpack to more than
// Config.MaxUnpacked.
type OversizedBatch uint8

const (
	// RejectBatch puts one record without a body in its place, which no handler sees: it
	// is rejected, so the container's DeadLetter decides, and the dead letter has the
	// batch's offsets. Records behind it are read.
	RejectBatch OversizedBatch = iota
	// StopAtBatch ends the consumer with an error when all before the batch is done, again
	// at each reopening.
	StopAtBatch
)

// The headers of the record that stands for a batch: its first offset, and the one behind
// its last.
const (
	HeaderBatchFirst = "longshore-batch-first"
	HeaderBatchNext  = "longshore-batch-next"
)

// defaultUnpacked is what one batch may unpack to, and about what a client holds unpacked
// before it is polled.
const defaultUnpacked = 64 << 20

func (c *Config) unpacked() int { return or(c.MaxUnpacked, defaultUnpacked) }

// oversizedKey is where the record that stands for a batch keeps why.
type oversizedKey struct{}

// oversized puts a record in the place of a batch, or notes that reading ends there. The
// gate is held.
func (o *poller) oversized(p *partition, big *kgo.ErrDecompressTooLarge, at time.Time) {
	why := &longshore.Error{Code: longshore.CodeTooLarge, Op: fmt.Sprintf("read %s for %s", p.key, o.src.title()), Source: o.src.name(),
		Err:  fmt.Errorf("the batch of offsets %d to %d unpacks to more than %d bytes", big.Offset, big.NextOffset-1, o.src.b.cfg.unpacked()),
		Hint: fmt.Sprintf("raise kafka.Config.MaxUnpacked, or move the group's position to %d", big.NextOffset)}
	o.reports.repeated("oversized "+p.key.String(), why.Error(), why)
	if !p.standIn(big, why, at) {
		return
	}
	o.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{big.Topic: {big.Partition: {Epoch: big.Epoch, Offset: big.NextOffset}}})
}

// standIn reports whether reading goes on after the batch.
func (p *partition) standIn(big *kgo.ErrDecompressTooLarge, why error, at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state != assigned || big.NextOffset <= p.next:
		return false
	case p.with.src.cfg.OversizedBatch == StopAtBatch:
		p.barrier = why
		return false
	}
	p.startAt(big.Offset)
	r := &kgo.Record{Topic: big.Topic, Partition: big.Partition, Offset: big.NextOffset - 1, LeaderEpoch: big.Epoch, Timestamp: at,
		Value: []byte{}, Context: context.WithValue(context.Background(), oversizedKey{}, why),
		Headers: []kgo.RecordHeader{{Key: HeaderBatchFirst, Value: strconv.AppendInt(nil, big.Offset, 10)}, {Key: HeaderBatchNext, Value: strconv.AppendInt(nil, big.NextOffset, 10)}}}
	p.next = big.NextOffset
	p.buf.push([]*kgo.Record{r}, at)
	p.enqueue()
	return true
}

// ended is why reading ends at a batch, once all before it is done; nil: it does not.
func (p *partition) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.barrier == nil || p.state != assigned || p.t.Len() > 0 || !p.buf.empty() || p.again.count() > 0 {
		return nil
	}
	return p.barrier
}

// Prepare implements [transport.Preparer]: it rejects what stands for a batch.
func (s *Group) Prepare(_ context.Context, d *longshore.Delivery) error {
	r, ok := d.Native().(*kgo.Record)
	if !ok || r.Context == nil {
		return nil
	}
	if why, ok := r.Context.Value(oversizedKey{}).(error); ok {
		return longshore.Reject(why)
	}
	return nil
}
