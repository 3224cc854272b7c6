package sqs

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
)

// reports puts what happens to a consumer into words for its observer.
type reports struct {
	*notify.Notifier
	src     *queueSource // for names
	garbled time.Time    // when a garbled message was last reported; once a minute is enough
}

// lost ends the deliveries that are still open and reports them.
func (r *reports) lost(ds []*longshore.Delivery, cause error) {
	open := ds[:0]
	for _, d := range ds {
		if d.Lose(cause) { // not those that were settled meanwhile
			open = append(open, d)
		}
	}
	r.Lost(open, cause)
}

// leaseLost is lost for leases that could not be kept.
func (r *reports) leaseLost(hs []*held, why string) {
	if len(hs) == 0 {
		return
	}
	what := fmt.Sprintf("%d messages", len(hs))
	if len(hs) == 1 {
		what = "message " + hs[0].id
	}
	ds := make([]*longshore.Delivery, len(hs))
	for i, h := range hs {
		ds[i] = h.d
	}
	r.lost(ds, &longshore.Error{Code: longshore.CodeLeaseLost, Source: r.src.ref.name,
		Op:   fmt.Sprintf("%s: the lease of %s could not be kept (%s); its context was cancelled and nothing was settled", r.src.title(), what, why),
		Hint: "split the work or settle earlier", Err: longshore.ErrLost})
}

// settleFailed reports a settlement that was not carried out.
func (r *reports) settleFailed(o *op, err error) {
	if !r.Observed() {
		return
	}
	var where []longshore.Field
	if p, unknown := r.src.place(); unknown == nil {
		where = p.where()
	}
	r.SettleFailed(o.h.d, o.verb, &longshore.Error{Code: longshore.CodeSettle, Fields: where,
		Op: fmt.Sprintf("%s message %s of %s", o.verb.Verb, o.h.id, r.src.title()), Source: r.src.ref.name, Err: err, Hint: "the message will be redelivered"})
}

// notice reports anything else.
func (r *reports) notice(text string, err error) {
	r.Event(transport.Event{Kind: transport.EventNotice, Text: text, Err: err})
}

// changed reports a message that was changed on its way, once a minute.
func (r *reports) changed(h *held) {
	if h.since.Sub(r.garbled) < time.Minute {
		return
	}
	r.garbled = h.since
	r.notice(fmt.Sprintf("%s: message %s was changed on its way: its body does not match its MD5 %s; it stays hidden until its timeout ends and is then redelivered",
		r.src.title(), h.id, aws.ToString(h.native.MD5OfBody)),
		&longshore.Error{Code: longshore.CodeUndecodable, Op: "receive from " + r.src.title(), Source: r.src.ref.name,
			Err: fmt.Errorf("the body of message %s does not match its MD5", h.id), Hint: "look at proxies and the server between here and SQS"})
}

// unsupported is the error of a verb that the queue cannot serve.
func (r *reports) unsupported(err error) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: "settle a message of " + r.src.title(), Source: r.src.ref.name, Err: err}
}

// errExhausted is the failure of an extension beyond SQS's longest lease.
var errExhausted = errors.New("12 hours since the receive are used up")
