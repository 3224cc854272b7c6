package sqs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

const (
	// cutTime bounds the call that asks for what a poll of a FIFO queue may have been
	// given when it was cut off, where the broker does not need more.
	cutTime = 500 * time.Millisecond
	// ghostTime is how long a poll that was cut off counts as open: until the broker
	// has heard of it, it would be given what goes back, and hide it for its lease.
	ghostTime = 50 * time.Millisecond
	// slowest is what a stop waits at most for a broker that answers slowly.
	slowest = time.Second
	// quietLease is the lease that a poll asks for while the queue is quiet. If its
	// answer is lost, by our own cutting off or on the wire, the messages come again
	// after this time and not after the queue's own, which may be hours. Under load,
	// where a poll is answered at once, it asks for more and spares the extension of
	// what is handled within it.
	quietLease = 20 * time.Second
	busyLease  = time.Minute
	// unwanted is how long messages may wait here while Receive was called off.
	unwanted = time.Second
	// enduring is how long polls may fail for passing reasons before the consumer
	// is at its end.
	enduring = 10 * time.Second
)

// intake is the receiving side of a consumer; the consumer's mu guards it.
type intake struct {
	buffer      []*held
	lines       lines
	granted     int // how many more the last Receive had room for
	waiting     bool
	interrupted time.Time // a Receive was called off then, and none has come since
	polls       int       // open
	asked       int       // by these
	wanted      int       // polls, by the load
	loaded      bool      // the last answer was a full one
	canceled    bool
	ending      bool // Cancel waits for the polls: what they bring is still taken in where a return would count
	paused      bool
	ctx         context.Context //nolint:containedctx // of the open polls
	cut         context.CancelFunc
	cutAt       time.Time // the open polls are unwanted and are cut off then; zero: they are wanted
	failing     time.Time // since when polls fail; zero: they do not
	failures    int
	told        time.Time     // of failures
	patience    time.Duration // of a poll, where something on the way allows less than SQS; 0: it does not
	impatient   time.Time     // since when
}

func (in *intake) start(life context.Context) {
	in.wanted = 1
	in.ctx, in.cut = context.WithCancel(life)
}

// ended takes a poll off that asked for so many.
func (in *intake) ended(room int) {
	in.polls--
	in.asked -= room
	if in.polls == 0 {
		in.cutAt = time.Time{}
	}
}

// startPolls opens polls for what Receive has room for: while it waits, and under
// load also between its calls, so that the next one finds something. Beside
// others, and ahead, only full ones, so that calls are few. The caller holds mu.
func (c *consumer) startPolls() {
	in := &c.intake
	if in.waiting && len(in.buffer) > 0 { // it is about to take them, and says what room is left
		return
	}
	if !in.waiting && (!in.loaded || !in.interrupted.IsZero()) {
		return
	}
	for c.down == nil && !in.canceled && !in.paused && !c.late && !in.lines.full() && in.polls < min(in.wanted, c.maxPolls) {
		room := min(in.granted-len(in.buffer)-in.asked, maxBatch)
		if room <= 0 || (in.polls > 0 || !in.waiting) && room < maxBatch {
			return
		}
		in.polls++
		in.asked += room
		ctx, loaded := in.ctx, in.loaded
		c.crew.run(c.life, func() { c.poll(ctx, room, loaded) })
	}
}

// poll is one receive and what follows from it.
func (c *consumer) poll(ctx context.Context, room int, loaded bool) {
	patience, lease := c.terms(loaded)
	began := time.Now()
	out, err := c.receive(ctx, room, patience, lease)
	now := time.Now()
	took := now.Sub(began)
	if ctx.Err() == nil { // else it was cut off, by us
		c.opts.Operations.End(longshore.OperationReceive, began, codeOr(err))
	}
	if err != nil {
		c.pollFailed(ctx, room, err, took, patience)
		return
	}
	c.src.away.Store(false)
	arrived := make([]*held, len(out.Messages))
	for i := range out.Messages {
		arrived[i] = c.arrival(&out.Messages[i], now, took, lease)
	}
	if len(arrived) == 0 && ctx.Err() == nil && took < patience/2 {
		c.pauseFor(ctx, time.Second) // a server that does not wait must not be asked in a loop
	}
	c.mu.Lock()
	in := &c.intake
	in.ended(room)
	in.failing, in.failures = time.Time{}, 0
	if now.Sub(in.impatient) > time.Hour { // perhaps it was only a bad time
		in.patience = 0
	}
	in.loaded = len(arrived) == room && took < c.atOnce()
	switch {
	case len(arrived) == 0:
		in.wanted = 1
	case in.loaded:
		in.wanted = min(in.wanted*2, c.maxPolls)
	}
	lost := c.admitAll(arrived, now)
	c.startPolls()
	c.announce()
	c.wake()
	c.mu.Unlock()
	c.reportLeases(lost, "it was delivered again")
	c.reportGarbled(arrived)
}

// terms are how long a poll waits, and the lease that it asks for.
func (c *consumer) terms(loaded bool) (patience, lease time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if patience = c.intake.patience; patience == 0 {
		patience = maxWait
	}
	if loaded {
		return patience, min(c.lease, busyLease)
	}
	return patience, min(c.lease, quietLease)
}

func (c *consumer) receive(cut context.Context, room int, patience, lease time.Duration) (*awssqs.ReceiveMessageOutput, error) {
	ctx, cancel := context.WithTimeout(cut, maxWait+callTimeout)
	defer cancel()
	in := &awssqs.ReceiveMessageInput{QueueUrl: aws.String(c.url), MaxNumberOfMessages: int32(room), //nolint:gosec // at most 10
		WaitTimeSeconds: seconds(patience), VisibilityTimeout: seconds(lease),
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}}
	if c.fifo {
		in.ReceiveRequestAttemptId = aws.String(newID())
	}
	out, err := c.api.ReceiveMessage(ctx, in, checkedHere)
	if err != nil && c.fifo && ctx.Err() == nil && !permanent(err) {
		// A FIFO queue hands out the same messages again, should the answer have
		// been lost.
		out, err = c.api.ReceiveMessage(ctx, in, checkedHere)
	}
	if err != nil && c.fifo && cut.Err() != nil {
		return c.afterCut(in)
	}
	return out, err
}

// afterCut asks for what a poll may have been given at the moment when it was cut
// off. With the attempt's id a FIFO queue hands out the same again; on a standard
// queue it comes back when quietLease ends.
func (c *consumer) afterCut(in *awssqs.ReceiveMessageInput) (*awssqs.ReceiveMessageOutput, error) {
	ctx, cancel := context.WithTimeout(c.life, c.atLeast(cutTime))
	defer cancel()
	in.WaitTimeSeconds = 0
	return c.api.ReceiveMessage(ctx, in, checkedHere)
}

// atLeast is d, or twice what the broker has lately needed for a settlement: one that is
// busy hears late of a poll that was cut off.
func (c *consumer) atLeast(d time.Duration) time.Duration {
	return min(max(d, 2*time.Duration(c.slow.Load())), max(d, slowest))
}

// atOnce is how long an answer may take that did not wait for messages: behind a slow
// link, or with large messages, each takes seconds, and one poll after the other would
// bring ten messages in as many.
func (c *consumer) atOnce() time.Duration {
	return min(max(time.Second, 2*time.Duration(c.slow.Load())), maxWait/2)
}

// tookFor notes how long a settlement took. A slow one counts for less with each that follows.
func (c *consumer) tookFor(d time.Duration) {
	c.slow.Store(max(int64(d), c.slow.Load()*3/4))
}

// pollFailed waits before the next poll, or ends the consumer.
func (c *consumer) pollFailed(ctx context.Context, room int, err error, took, patience time.Duration) {
	cut := ctx.Err() != nil
	code, passing := codeOf(err)
	now := time.Now()
	c.mu.Lock()
	in := &c.intake
	var delay time.Duration
	first := false // in a minute
	if !cut {
		c.curb(took, patience, now)
		if in.failing.IsZero() {
			in.failing = now
			// Refused credentials may have been replaced: they are asked for once more.
			passing = passing || code == longshore.CodeAuth
		}
		delay = min(100*time.Millisecond<<min(in.failures, 6), 5*time.Second)
		in.failures++
		in.wanted, in.loaded = 1, false
		if first = now.Sub(in.told) >= time.Minute; first {
			in.told = now
		}
		if code == longshore.CodeBlocked { // who asks for fewer calls is there, and what it gave us is ours
			in.failing = now
		}
		if passing && now.Sub(in.failing) >= enduring {
			c.src.away.Store(true)
		}
		// One that was opened again, since not all calls fail, ends at once and is not
		// ready in between.
		passing = passing && (code == longshore.CodeBlocked || !c.src.away.Load())
	}
	c.mu.Unlock()
	failure := c.src.failure("receive from "+c.src.title(), err)
	switch {
	case cut:
		c.pauseFor(c.life, c.atLeast(ghostTime))
	case !passing:
		c.fail(failure)
	default:
		if first {
			c.tell(transport.EventNotice, "receiving fails, it is tried again", failure)
		}
		c.pauseFor(ctx, delay)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.intake.ended(room)
	c.startPolls()
	c.announce()
}

// curb shortens polls that are cut off while they wait, twice in a row: a proxy that
// ends what is silent for a while. It is no outage, and each of them may have had
// messages. The caller holds mu.
func (c *consumer) curb(took, patience time.Duration, now time.Time) {
	in := &c.intake
	if in.failures == 0 || took < 2*time.Second || took >= patience {
		return
	}
	in.patience, in.impatient = max((took/2).Truncate(time.Second), time.Second), now
	in.failing, in.failures = time.Time{}, 0
}

func (c *consumer) pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func seconds(d time.Duration) int32 {
	return int32((d + time.Second - 1) / time.Second) //nolint:gosec // at most 12 h
}

// arrival makes a delivery of a message. The lease runs since the broker handed
// it out, some time before now.
func (c *consumer) arrival(m *types.Message, now time.Time, took, lease time.Duration) *held {
	h := &held{id: aws.ToString(m.MessageId), receipt: aws.ToString(m.ReceiptHandle), native: m, garbled: !intact(m),
		since: now, deadline: now.Add(lease - min(took, lease/10, time.Second))}
	if h.id == "" { // two without one are still two
		h.id = hashed(h.receipt)
	}
	h.receives, _ = strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	h.receives = max(h.receives, 1)
	if c.fifo {
		h.group = m.Attributes["MessageGroupId"]
	}
	c.mu.Lock()
	c.token++
	h.token = c.token
	c.mu.Unlock()
	d := longshore.NewDelivery(c.opts.Base, c, h.token)
	in := c.src.cfg.Envelope.read(m)
	decode(&d.Message, in)
	d.Attempt = c.src.counts.attempt(h.id, h.receives)
	d.Origin = longshore.Origin{Subscription: c.sub, Topic: c.src.ref.name, Redelivered: h.receives > 1,
		ReceivedAt: now, GroupID: m.Attributes["MessageGroupId"]}
	if seq := m.Attributes["SequenceNumber"]; seq != "" {
		d.Origin.Position, _ = strconv.ParseUint(seq, 10, 64) // 0 if it is longer than that
	}
	d.SetNative(m)
	h.d = d
	return h
}

// admitAll takes in what a poll brought. A message that is early, its delay being
// longer than SQS could hide it, goes back for the rest, and what is behind it in
// its group too. The caller holds mu.
func (c *consumer) admitAll(arrived []*held, now time.Time) (lost []*longshore.Delivery) {
	behind := map[string]bool{}
	for _, h := range arrived {
		if c.adopt(h, now) {
			continue
		}
		if h.garbled { // left hidden: it comes again
			behind[h.group] = true
			continue
		}
		if old := c.byID[h.id]; old != nil && old.settled != nil && old.settled.kind == opReturn {
			old.deadline = now // nobody has to return it any more
			c.visible(old.settled, now)
		}
		rest := c.src.counts.early(h.id, now)
		back := rest > 0 || c.fifo && behind[h.group]
		if back {
			behind[h.group] = true
		}
		lost = c.admit(h, back, rest, lost)
	}
	return lost
}

// admit puts a delivery into the buffer, or sends it where it has to go. The
// caller holds mu.
func (c *consumer) admit(h *held, back bool, rest time.Duration, lost []*longshore.Delivery) []*longshore.Delivery {
	old := c.byID[h.id]
	switch {
	case old != nil && old.settled != nil && old.settled.kind == opDelete:
		// It is done here, and the broker does not know it yet: whatever receipt it
		// came with is deleted too.
		old.settled.receipt, old.settled.unsure = h.receipt, false
		c.enqueue(&op{kind: opDelete, receipt: h.receipt, h: h, quiet: true})
		return lost
	case old != nil && old.settled == nil: // its lease has ended
		lost = c.lose(old, lost)
	}
	c.held[h.token] = h
	c.byID[h.id] = h
	late := c.intake.canceled && (!c.intake.ending || c.maxReceives == 0)
	if back || late || c.intake.paused || c.closed {
		c.giveBackFor(h, rest)
		return lost
	}
	c.keep(h)
	if c.intake.lines.join(h) {
		c.intake.buffer = append(c.intake.buffer, h)
	}
	return lost
}

// advance lets the next of a group be handed out, h being settled. The caller
// holds mu.
func (c *consumer) advance(h *held) {
	if next := c.intake.lines.settled(h); next != nil {
		c.intake.buffer = append(c.intake.buffer, next)
		c.announce()
	}
}

// releaseBuffer gives back all that was not handed out. The caller holds mu.
func (c *consumer) releaseBuffer() {
	in := &c.intake
	for _, h := range in.buffer {
		c.giveBack(h)
	}
	for _, h := range in.lines.empty() {
		c.giveBack(h)
	}
	in.buffer = nil
}
