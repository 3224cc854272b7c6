package sqs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs/internal/codec"
)

// Depth is what SQS counts in a queue. The counts are approximate and settle a
// minute after the last change.
type Depth struct {
	Visible int64 // can be received
	Hidden  int64 // received and not settled, by any consumer
	Delayed int64 // sent with a delay that has not ended
}

// Depth reads the counts of a queue given by name, URL or ARN.
func (b *Broker) Depth(ctx context.Context, queue string) (Depth, error) {
	s := &queueSource{b: b}
	var err error
	if s.ref, err = parseReference(queue); err != nil {
		return Depth{}, err
	}
	p, err := s.place()
	if err != nil {
		return Depth{}, err
	}
	api, err := b.acquire(p)
	if err != nil {
		return Depth{}, err
	}
	l := &queueHandle{b: b, api: api}
	defer l.close()
	if l.url, err = l.find(ctx, s.ref); err == nil {
		var d Depth
		if d, err = l.depth(ctx); err == nil {
			return d, nil
		}
	}
	return Depth{}, s.failure("read the depth of "+s.title(), err)
}

// depth reads the queue's own estimates, which may be a minute old.
func (l *queueHandle) depth(ctx context.Context) (Depth, error) {
	attrs, err := l.attributes(ctx, l.url, "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
		"ApproximateNumberOfMessagesDelayed", "VisibilityTimeout")
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(attrs[name], 10, 64) // 0 if unknown
		return n
	}
	return Depth{number("ApproximateNumberOfMessages"), number("ApproximateNumberOfMessagesNotVisible"), number("ApproximateNumberOfMessagesDelayed")}, err
}

// Backlog is how many messages can be received, about. It also notices that the
// queue's timeout was changed. It can be asked after Close too, and leaves no
// connection open then.
func (c *consumer) Backlog(ctx context.Context) (int64, time.Time, error) {
	p, err := c.src.place()
	if err != nil {
		return 0, time.Time{}, err
	}
	// A user of its own: Close may come before the answer, or have come already.
	api, err := c.calls.b.acquire(p)
	if err != nil {
		return 0, time.Time{}, err
	}
	l := &queueHandle{b: c.calls.b, api: api}
	defer l.close()
	attrs, err := l.attributes(ctx, c.calls.url, "ApproximateNumberOfMessages", "VisibilityTimeout")
	if err != nil {
		return 0, time.Time{}, c.src.failure("read the depth of "+c.src.title(), err)
	}
	n, err := strconv.ParseInt(attrs["ApproximateNumberOfMessages"], 10, 64)
	if err != nil {
		return 0, time.Time{}, &longshore.Error{Code: longshore.CodeInternal, Op: "read the depth of " + c.src.title(), Source: c.src.ref.name,
			Err: errors.New("the answer holds no count")}
	}
	if v, err := strconv.Atoi(attrs["VisibilityTimeout"]); err == nil && v > 0 && c.src.cfg.VisibilityTimeout == 0 {
		c.mu.Lock()
		c.held.length = time.Duration(v) * time.Second
		c.mu.Unlock()
	}
	return n, time.Now(), nil
}

// lookLease is how long messages are hidden while Browse looks at them, should it
// not come to giving them back.
const lookLease = 10 * time.Second

// Browse looks at messages by receiving them and giving all back at once; SQS has
// no other way. Looking counts as a delivery, so a queue with a redrive policy,
// and a FIFO queue, whose groups are held up meanwhile, need
// QueueConfig.BrowseCounts. A later page receives those of the earlier ones once
// more; of a FIFO group the first ten can be seen.
func (s *queueSource) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	known, ok := s.looks.get(from)
	if !ok {
		return nil, "", s.cannotBrowse("the position is not one that this source gave out, or too old", "begin again")
	}
	l, err := s.look(ctx)
	if err != nil {
		return nil, "", err
	}
	defer l.calls.close()
	var ds []*longshore.Delivery
	seen := maps.Clone(known)
	end, err := l.pages(ctx, known, max(n, 1), func(h *held) bool {
		ds, seen[h.id] = append(ds, h.d), true
		return true
	})
	if err != nil {
		return nil, "", s.failure("browse "+s.title(), err)
	}
	if end {
		return ds, "", nil
	}
	return ds, s.looks.put(seen), nil
}

// Scan shows messages as Browse does, at the same cost, but each as soon as it was
// received.
func (s *queueSource) Scan(ctx context.Context, n int, each func(*longshore.Delivery) bool) (whole bool, err error) {
	l, err := s.look(ctx)
	if err != nil {
		return false, err
	}
	defer l.calls.close()
	whole, err = l.pages(ctx, nil, max(n, 1), func(h *held) bool { return each(h.d) })
	if err != nil {
		return false, s.failure("browse "+s.title(), err)
	}
	return whole, nil
}

// look is one look into a queue.
type look struct {
	calls    calls    // receives and gives back
	arrivals arrivals // reads messages as a consumer does
}

// look prepares one, where the queue may be looked into.
func (s *queueSource) look(ctx context.Context) (*look, error) {
	h, err := s.handle(ctx, transport.OpenOptions{}, false)
	if err != nil {
		return nil, err
	}
	if !s.cfg.BrowseCounts && (h.fifo || h.maxReceives > 0) {
		h.close()
		return nil, s.cannotBrowse("looking counts as a delivery: it may dead-letter messages, and holds up the groups of a FIFO queue", "set BrowseCounts to accept that")
	}
	l := &look{calls: calls{queueHandle: h}}
	l.arrivals.src, l.arrivals.fifo, l.arrivals.base, l.arrivals.settler = s, h.fifo, context.Background(), lookedAt{}
	l.arrivals.sub = &longshore.Subscription{Transport: "aws_sqs", Source: s.ref.name}
	return l, nil
}

// cannotBrowse is the error of a queue whose messages cannot be looked at.
func (s *queueSource) cannotBrowse(why, hint string) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: "browse " + s.title(), Source: s.ref.name, Err: errors.New(why), Hint: hint}
}

// pages receives until n messages beyond the known ones were shown, each returns false, or
// no more come: end. One that is received again, because its lease ended during a long
// look, is not shown twice.
func (l *look) pages(ctx context.Context, known map[string]bool, n int, each func(*held) bool) (end bool, err error) {
	var all []*held
	shown, stopped := map[string]bool{}, false
	for len(shown) < n && err == nil && !end && !stopped {
		var out *awssqs.ReceiveMessageOutput
		out, err = l.calls.api.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: aws.String(l.calls.url), VisibilityTimeout: seconds(lookLease),
			MaxNumberOfMessages: int32(max(min(n+len(known)-len(all), maxBatch), 1)), WaitTimeSeconds: 1, //nolint:gosec // at most 10; a short poll asks only some of the servers
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
		if err != nil {
			break
		}
		end = len(out.Messages) == 0
		now := time.Now()
		for i := range out.Messages {
			h := l.arrivals.of(&out.Messages[i], now, 0, lookLease)
			all = append(all, h)
			if !stopped && !known[h.id] && !shown[h.id] && len(shown) < n {
				shown[h.id] = true
				stopped = !each(h)
			}
		}
		if len(all) >= n+len(known) && len(shown) < n {
			end = true // some of the known ones have gone
		}
	}
	berr := l.giveBack(context.WithoutCancel(ctx), all)
	return end && !stopped, errors.Join(err, berr)
}

// giveBack makes everything visible again and closes the deliveries.
func (l *look) giveBack(ctx context.Context, seen []*held) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var errs []error
	for batch := range slices.Chunk(seen, maxBatch) {
		changes := make([]change, len(batch))
		for i, h := range batch {
			changes[i] = change{receipt: h.receipt}
			l.arrivals.src.attempts.next(h.id, h.receives, h.d.Attempt)
			h.d.Lose(longshore.ErrLost)
		}
		r := l.calls.hide(ctx, longshore.OperationNack, changes)
		errs = append(errs, r.call)
	}
	return errors.Join(errs...)
}

// lookedAt is the settler of deliveries that were only looked at and are back already.
type lookedAt struct{}

func (lookedAt) Ack(context.Context, uint64) error                      { return longshore.ErrLost }
func (lookedAt) Nack(context.Context, uint64, time.Duration, int) error { return longshore.ErrLost }
func (lookedAt) Reject(context.Context, uint64, error) error            { return longshore.ErrLost }
func (lookedAt) Extend(context.Context, uint64, time.Duration) error    { return longshore.ErrLost }

// looks remembers what pages of Browse have shown, by the position that follows.
type looks struct {
	mu    sync.Mutex                 // guards what follows
	seen  map[string]map[string]bool // by the position that follows, the ids that pages have shown
	order []string                   // the oldest look is forgotten first
}

const maxLooks = 16

// get returns the messages that a look has shown so far; false if it was forgotten.
func (l *looks) get(from string) (map[string]bool, bool) {
	if from == "" {
		return map[string]bool{}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.seen[from]
	return m, ok
}

// put remembers what a look has shown, under a name for the next page. The oldest look is
// forgotten, since nothing says when one has been given up.
func (l *looks) put(seen map[string]bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]map[string]bool{}
	}
	if len(l.order) == maxLooks {
		delete(l.seen, l.order[0])
		l.order = l.order[1:]
	}
	id := codec.NewID()
	l.seen[id] = seen
	l.order = append(l.order, id)
	return id
}

// BrowseCost is what a look leaves behind.
func (s *queueSource) BrowseCost() string {
	return "peeking received each message and gave it back: SQS has counted a receive"
}
