package dlq

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
)

// Purge removes dead letters for good. A log can only forget its oldest part: there
// everything up to the first one that is not chosen goes, and what is chosen behind
// it is counted as kept. Replayed ones are chosen there whatever the filter says.
func Purge(ctx context.Context, j Job) (Result, error) {
	if log, ok := j.Source.(Log); ok {
		return j.truncate(ctx, log)
	}
	r, err := j.start(ctx)
	if err != nil || r.consumer == nil {
		return r.res, err
	}
	err = r.each(ctx, r.settle)
	if eerr := r.end(ctx); err == nil {
		err = eerr
	}
	return r.res, err
}

// Prefix is what of a log can be removed.
type Prefix struct {
	Before  map[int32]int64 // a position of each partition: all before it
	Chosen  int             // how many that are
	Behind  int             // chosen, but behind one that stays
	Staying int             // not chosen
}

// PrefixOf looks what of a log can be removed.
func PrefixOf(ctx context.Context, j Job) (p Prefix, err error) {
	p.Before = map[int32]int64{}
	stop := map[int32]bool{}
	_, err = Look(ctx, j.Source, math.MaxInt, func(l Letter) bool {
		num := l.Origin.Partition
		switch chosen := l.Replayed || j.Filter.Match(l.Delivery, l.Facts); {
		case !chosen:
			stop[num] = true
			p.Staying++
		case stop[num]:
			p.Behind++
		case j.Limit == 0 || p.Chosen < j.Limit:
			p.Before[num] = int64(l.Origin.Position) + 1 //nolint:gosec // an offset
			p.Chosen++
		}
		return true
	})
	return p, err
}

func (j *Job) truncate(ctx context.Context, log Log) (res Result, err error) {
	p, err := PrefixOf(ctx, *j)
	if err != nil {
		return res, err
	}
	res = Result{Total: int64(p.Chosen), Looked: p.Chosen + p.Behind + p.Staying, Kept: p.Behind + p.Staying}
	if p.Chosen == 0 {
		return res, nil
	}
	if err := log.Truncate(ctx, p.Before); err != nil {
		return res, err
	}
	res.Done = p.Chosen
	return res, nil
}

// sentAt is when SQS got a message, zero elsewhere.
func sentAt(d *longshore.Delivery) time.Time {
	m, ok := d.Native().(*types.Message)
	if !ok {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
