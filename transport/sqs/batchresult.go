package sqs

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/longshore-go/longshore"
)

// result is the answer to a batch: an error for the call, or for entries, which
// are named by their position.
type result struct {
	call    error             // the whole call failed
	entries [maxBatch]outcome // else what became of each; SQS answers in any order
}

// outcome of an entry; zero: the answer did not mention it.
type outcome struct {
	known, passing bool  // the answer names the entry; its failure may pass
	err            error // nil: done
}

const digits = "0123456789"

// entryID is the id of the entry at a position.
func entryID(i int) string { return digits[i : i+1] }

// of returns the outcome of an entry, and whether it is worth trying again. An
// entry that the answer does not mention is.
func (r *result) of(i int) (err error, passing bool) { //nolint:revive // the error is a value here
	if r.call != nil {
		return plain(r.call), !permanent(r.call)
	}
	if o := r.entries[i]; o.known {
		return o.err, o.passing
	}
	return errors.New("the answer does not mention it"), true
}

// code is that of the call's failure, or says that an entry failed.
func (r *result) code() longshore.Code {
	if r.call != nil {
		return codeOr(r.call)
	}
	for i := range r.entries {
		if r.entries[i].err != nil {
			return longshore.CodeSettle
		}
	}
	return ""
}

// inCompany says that a call for several entries was refused as a whole, for what may
// be the fault of one, or of their number. Each by itself may go through.
func (r *result) inCompany(entries int) bool {
	if r.call == nil || entries < 2 {
		return false
	}
	code, passing := codeOf(r.call)
	return code == longshore.CodeRefused && !passing
}

// unanswered says that it is unknown whether an entry was carried out: the call
// ended without an answer, or in a failure of the server, or the answer does not
// mention it.
func (r *result) unanswered(i int) bool {
	if r.call == nil {
		return !r.entries[i].known
	}
	api, ok := errors.AsType[smithy.APIError](r.call)
	return !ok || api.ErrorFault() != smithy.FaultClient
}

// neverSent reports whether a call failed before anything went out: no connection came
// about.
func neverSent(call error) bool {
	if op, ok := errors.AsType[*net.OpError](call); ok && op.Op == "dial" {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](call); ok {
		return true
	}
	return codeOr(call) == longshore.CodeTLS
}

// put notes an outcome; ids that are not ours are left out.
func (r *result) put(id *string, passing bool, err error) {
	if i, bad := strconv.Atoi(aws.ToString(id)); bad == nil && i >= 0 && i < maxBatch {
		r.entries[i] = outcome{known: true, passing: passing, err: err}
	}
}

// entriesOf reads an answer; failed is how to take an entry that was refused.
func entriesOf[E any](done []E, id func(*E) *string, refused []types.BatchResultErrorEntry, failed func(*result, *types.BatchResultErrorEntry)) (r result) {
	for i := range done {
		r.put(id(&done[i]), false, nil)
	}
	for i := range refused {
		failed(&r, &refused[i])
	}
	return r
}

func sentID(e *types.SendMessageBatchResultEntry) *string { return e.Id }

// failed takes one entry's error in. A receipt that is no longer good is kept apart from other
// errors: for a delete it may mean success.
func (r *result) failed(f *types.BatchResultErrorEntry) {
	err := fmt.Errorf("%s (%s)", aws.ToString(f.Message), aws.ToString(f.Code))
	code := aws.ToString(f.Code)
	if isGone(code) {
		r.put(f.Id, false, fmt.Errorf("%w: %w", errGone, err))
		return
	}
	_, passing := codeOfName(code, f.SenderFault)
	r.put(f.Id, passing, err)
}

// failedSend is failed, for an entry without a receipt.
func (r *result) failedSend(f *types.BatchResultErrorEntry) {
	code, passing := codeOfName(aws.ToString(f.Code), f.SenderFault)
	r.put(f.Id, passing, refused(code, fmt.Errorf("%s (%s)", aws.ToString(f.Message), aws.ToString(f.Code)), hintFor(code, strings.TrimPrefix(aws.ToString(f.Code), "AWS.SimpleQueueService."))))
}

func newResult(call error) result { return result{call: call} }

// isGone distinguishes codes that say the receipt is old from those that say it is wrong.
func isGone(code string) bool {
	switch strings.TrimPrefix(code, "AWS.SimpleQueueService.") {
	case "MessageNotInflight", "InvalidParameterValue", "ReceiptHandleIsInvalid":
		return true
	}
	return false
}
