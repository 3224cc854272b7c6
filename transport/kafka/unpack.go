package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
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

// unpacker bounds what the batches of one fetch unpack to together: each of them may be
// within the limit, and a fetch of a MiB may hold hundreds. What does not fit waits in the
// log until that before it was polled. With several brokers, whose fetches are unpacked
// side by side, the bound is for each about the limit.
type unpacker struct {
	inner kgo.Decompressor
	limit int64
	held  atomic.Int64 // unpacked since the last poll
}

// errUnpackLater leaves a batch in the log for the next fetch. The client hands out what
// was unpacked before it.
var errUnpackLater = errors.New("enough is unpacked for now")

// newUnpacker takes the decompressor that a client with the user's options has: the
// client's own bounded by the limit, or the user's. No connection is made.
func newUnpacker(given []kgo.Opt, limit int) (*unpacker, error) {
	bounded := kgo.MaxDecompressBatchBytes(limit)
	cl, err := kgo.NewClient(append([]kgo.Opt{bounded}, given...)...)
	if err != nil { // some options are accepted beside others only
		cl, err = kgo.NewClient(bounded)
	}
	if err != nil {
		return nil, badConfig("MaxUnpacked", firstLine(err.Error()), "")
	}
	defer cl.Close()
	inner, ok := cl.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		return nil, badConfig("Options", "the client has no decompressor", "")
	}
	return &unpacker{inner: inner, limit: int64(limit)}, nil
}

// Decompress implements [kgo.Decompressor].
func (u *unpacker) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecNone {
		return src, nil
	}
	if u.held.Load() >= u.limit {
		return nil, errUnpackLater
	}
	out, err := u.inner.Decompress(src, codec)
	u.held.Add(int64(len(out)))
	return out, err
}

// polled: what was unpacked is with its partitions now, and counted there.
func (u *unpacker) polled() { u.held.Store(0) }

// oversizedKey is where the record that stands for a batch keeps why.
type oversizedKey struct{}

// oversized puts the record in the place of its batch, or notes that reading ends here.
// The gate is held.
func (c *consumer) oversized(p *partition, big *kgo.ErrDecompressTooLarge, at time.Time) {
	why := &longshore.Error{Code: longshore.CodeTooLarge, Op: fmt.Sprintf("read %s for %s", p.key, c.src.title()), Source: c.src.name(),
		Err:  fmt.Errorf("the batch of offsets %d to %d unpacks to more than %d bytes", big.Offset, big.NextOffset-1, c.src.b.cfg.unpacked()),
		Hint: fmt.Sprintf("raise kafka.Config.MaxUnpacked, or move the group's position to %d", big.NextOffset)}
	c.trouble("oversized "+p.key.String(), transport.Event{Kind: transport.EventNotice, Err: why, Text: why.Error()})
	if !p.standIn(big, why, at) {
		return
	}
	c.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{big.Topic: {big.Partition: {Epoch: big.Epoch, Offset: big.NextOffset}}})
}

// standIn reports whether reading goes on behind the batch.
func (p *partition) standIn(big *kgo.ErrDecompressTooLarge, why error, at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed || p.leaving || big.NextOffset <= p.next:
		return false
	case p.c.src.cfg.OversizedBatch == StopAtBatch:
		p.barrier = why
		return false
	}
	p.startAt(big.Offset)
	r := &kgo.Record{Topic: big.Topic, Partition: big.Partition, Offset: big.NextOffset - 1, LeaderEpoch: big.Epoch, Timestamp: at,
		Value: []byte{}, Context: context.WithValue(context.Background(), oversizedKey{}, why),
		Headers: []kgo.RecordHeader{{Key: HeaderBatchFirst, Value: strconv.AppendInt(nil, big.Offset, 10)}, {Key: HeaderBatchNext, Value: strconv.AppendInt(nil, big.NextOffset, 10)}}}
	p.next = big.NextOffset
	p.grow(p.wait.push([]*kgo.Record{r}, at))
	p.enqueue()
	return true
}

// ended is why reading ends at a batch, once all before it is done; nil: it does not.
func (p *partition) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.barrier == nil || p.closed || p.leaving || p.t.Len() > 0 || !p.wait.empty() || len(p.again) > 0 {
		return nil
	}
	return p.barrier
}

// Prepare implements [transport.Preparer]: it rejects what stands for a batch.
func (s *groupSource) Prepare(_ context.Context, d *longshore.Delivery) error {
	r, ok := d.Native().(*kgo.Record)
	if !ok || r.Context == nil {
		return nil
	}
	if why, ok := r.Context.Value(oversizedKey{}).(error); ok {
		return longshore.Reject(why)
	}
	return nil
}
