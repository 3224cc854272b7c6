package sqs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Depth is what SQS counts in a queue. The counts are approximate and settle a
// minute after the last change.
type Depth struct {
	Visible int64 // can be received
	Hidden  int64 // received and not settled, by anybody
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
	l := &link{b: b, api: api}
	defer l.close()
	if l.url, err = l.find(ctx, s.ref); err == nil {
		var d Depth
		if d, err = l.depth(ctx); err == nil {
			return d, nil
		}
	}
	return Depth{}, callError("read the depth of "+s.title(), s.ref.name, err)
}

func (l *link) depth(ctx context.Context) (Depth, error) {
	attrs, err := l.attributes(ctx, l.url, "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
		"ApproximateNumberOfMessagesDelayed", "VisibilityTimeout")
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(attrs[name], 10, 64) // 0 where it is not told
		return n
	}
	return Depth{number("ApproximateNumberOfMessages"), number("ApproximateNumberOfMessagesNotVisible"), number("ApproximateNumberOfMessagesDelayed")}, err
}

// Backlog is how many messages can be received, about. It also notices that the
// queue's timeout was changed.
func (c *consumer) Backlog(ctx context.Context) (int64, time.Time, error) {
	attrs, err := c.attributes(ctx, c.url, "ApproximateNumberOfMessages", "VisibilityTimeout")
	if err != nil {
		return 0, time.Time{}, callError("read the depth of "+c.src.title(), c.src.ref.name, err)
	}
	n, err := strconv.ParseInt(attrs["ApproximateNumberOfMessages"], 10, 64)
	if err != nil {
		return 0, time.Time{}, &longshore.Error{Code: longshore.CodeInternal, Op: "read the depth of " + c.src.title(), Source: c.src.ref.name,
			Err: errors.New("the answer holds no count")}
	}
	if v, err := strconv.Atoi(attrs["VisibilityTimeout"]); err == nil && v > 0 && c.src.cfg.VisibilityTimeout == 0 {
		c.mu.Lock()
		c.lease = time.Duration(v) * time.Second
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
// QueueConfig.BrowseCounts. There is one page.
func (s *queueSource) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	if from != "" {
		return nil, "", &longshore.Error{Code: longshore.CodeUnsupported, Op: "browse " + s.title(), Source: s.ref.name,
			Err: errors.New("SQS has no position to go on from"), Hint: "ask for more at once"}
	}
	l, err := s.link(ctx, transport.OpenOptions{}, false)
	if err != nil {
		return nil, "", err
	}
	defer l.close()
	if !s.cfg.BrowseCounts && (l.fifo || l.maxReceives > 0) {
		return nil, "", &longshore.Error{Code: longshore.CodeUnsupported, Op: "browse " + s.title(), Source: s.ref.name,
			Err: errors.New("looking counts as a delivery: it may dead-letter messages, and holds up the groups of a FIFO queue"), Hint: "set BrowseCounts to do it all the same"}
	}
	c := &consumer{link: l, src: s, opts: transport.OpenOptions{Base: context.Background()}, life: ctx,
		sub: &longshore.Subscription{Transport: "aws_sqs", Source: s.ref.name}}
	var seen []*held
	for len(seen) < max(n, 1) {
		out, rerr := l.api.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: aws.String(l.url), VisibilityTimeout: seconds(lookLease),
			MaxNumberOfMessages: int32(min(max(n, 1)-len(seen), maxBatch)), WaitTimeSeconds: 1, //nolint:gosec // at most 10; a short poll asks only some of the servers
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
		if err = rerr; err != nil || len(out.Messages) == 0 {
			break
		}
		now := time.Now()
		for i := range out.Messages {
			seen = append(seen, c.arrival(&out.Messages[i], now, 0, lookLease))
		}
	}
	if berr := s.lookedAt(context.WithoutCancel(ctx), c, seen); err == nil {
		err = berr
	}
	if err != nil {
		return nil, "", callError("browse "+s.title(), s.ref.name, err)
	}
	ds := make([]*longshore.Delivery, len(seen))
	for i, h := range seen {
		ds[i] = h.d
	}
	return ds, "", nil
}

// lookedAt gives back what Browse has seen, and closes the deliveries.
func (s *queueSource) lookedAt(ctx context.Context, c *consumer, seen []*held) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var errs []error
	for len(seen) > 0 {
		n := min(len(seen), maxBatch)
		batch := make([]*op, n)
		for i, h := range seen[:n] {
			batch[i] = &op{kind: opReturn, h: h, receipt: h.receipt}
			s.counts.next(h.id, h.receives, h.d.Attempt)
			h.d.Lose(longshore.ErrLost)
		}
		r := c.hideAll(ctx, batch)
		errs = append(errs, r.call)
		seen = seen[n:]
	}
	return errors.Join(errs...)
}
