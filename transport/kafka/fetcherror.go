package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// fetchFailed decides what an error of a poll means for its topic, its partition or the
// consumer.
func (h *topicHealth) fetchFailed(e kgo.FetchError) {
	var (
		session *kgo.ErrGroupSession
		loss    *kgo.ErrDataLoss
	)
	switch err := e.Err; {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed), errors.Is(err, cluster.ErrUnpackLater):
	case errors.Is(err, kgo.ErrMaxDecompress): // see oversized
	case errors.As(err, &session):
		h.sessionFailed(session.Err)
	case errors.As(err, &loss):
		h.reports.Event(transport.Event{Kind: transport.EventSkipped, Err: err, Skipped: transport.SkippedTruncated,
			Text: fmt.Sprintf("%s: the log of %s/%d was cut off: read up to %d, reading on at %d", h.src.title(), e.Topic, e.Partition, loss.ConsumedTo, loss.ResetTo)})
	case errors.Is(err, kerr.TopicAuthorizationFailed) && h.denied(e.Topic, time.Now()):
		h.life.fail(h.src.b.failure("consume for "+h.src.title()+" at "+h.src.b.address(), h.src.name(), err))
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.InconsistentTopicID),
		errors.Is(err, kerr.TopicAuthorizationFailed):
		h.markBroken(e.Topic)
		if h.src.cfg.Declare.Partitions > 0 && time.Since(h.opened) < declaredSince && !errors.Is(err, kerr.TopicAuthorizationFailed) {
			return // not every broker knows yet what was just declared
		}
		why := h.src.b.failure(fmt.Sprintf("%s: topic %q", h.src.title(), e.Topic), e.Topic, err)
		h.reports.troubled(conditionTopic(e.Topic), longshoreError(why).Text()+"; retrying, and resubscribing once it can be read", why)
	case errors.Is(err, kerr.OffsetOutOfRange) && h.src.cfg.OutOfRange == Fail:
		h.life.fail(&longshore.Error{Code: longshore.CodeRefused, Op: fmt.Sprintf("read %s/%d for %s", e.Topic, e.Partition, h.src.title()), Source: h.src.name(),
			Err: errors.New("the position is not in the log any more (OFFSET_OUT_OF_RANGE)"), Hint: "set the group's offset by hand, or OutOfRange to ToEarliest or ToLatest"})
	case kerr.IsRetriable(err):
	default:
		at := tp{Topic: e.Topic, Num: e.Partition}
		h.reports.troubled(conditionFetch(at),
			fmt.Sprintf("%s: reading %s/%d failed%s: %v", h.src.title(), e.Topic, e.Partition, h.failedAt(at), err), err)
	}
}

// failedAt says where a fetch failed, and the way out: a batch that no client can read holds
// its partition until an administrator moves the group past it.
func (h *topicHealth) failedAt(at tp) string {
	p := h.assignments.get(at)
	if p == nil {
		return ""
	}
	return fmt.Sprintf(" at offset %d; retrying; if that does not help, move the group's position past it", p.expected())
}

// sessionFailed: this member is not in the group. The client joins again by itself, except
// where that cannot help.
func (h *topicHealth) sessionFailed(err error) {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		switch ke {
		case kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.FencedInstanceID,
			kerr.InconsistentGroupProtocol, kerr.InvalidGroupID, kerr.UnsupportedVersion, kerr.GroupMaxSizeReached,
			kerr.InvalidSessionTimeout, kerr.InvalidRequest, kerr.UnsupportedAssignor, kerr.InvalidRegularExpression:
			h.life.fail(h.src.b.failure(h.src.title()+" at "+h.src.b.address(), h.src.name(), ke))
			return
		}
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	h.reports.troubled(conditionSession, fmt.Sprintf("%s: not in the group: %v; joining again", h.src.title(), err), err)
}
