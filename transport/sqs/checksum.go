package sqs

import (
	"crypto/md5" //nolint:gosec // what SQS sends
	"encoding/hex"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// checkedHere turns off the SDK's own look at the bodies of a receive: for one that was
// changed on its way it throws all of the answer away, which hides the others, again
// and again, until a redrive policy takes them for failures.
func checkedHere(o *awssqs.Options) { o.DisableMessageChecksumValidation = true }

// intact: the body is what SQS sent, as far as it tells.
func intact(m *types.Message) bool {
	if m.Body == nil || m.MD5OfBody == nil {
		return true
	}
	sum := md5.Sum([]byte(*m.Body)) //nolint:gosec // see above
	return hex.EncodeToString(sum[:]) == *m.MD5OfBody
}

// reportGarbled tells of messages that were changed on their way, once a minute.
func (c *consumer) reportGarbled(arrived []*held) {
	for _, h := range arrived {
		if !h.garbled {
			continue
		}
		c.mu.Lock()
		quiet := h.since.Sub(c.garbled) < time.Minute
		if !quiet {
			c.garbled = h.since
		}
		c.mu.Unlock()
		if quiet {
			return
		}
		c.tell(transport.EventNotice, fmt.Sprintf("%s: message %s was changed on its way: its body is not that of its MD5 %s; it stays hidden until its timeout ends and comes again",
			c.src.title(), h.id, aws.ToString(h.native.MD5OfBody)), &longshore.Error{Code: longshore.CodeUndecodable, Op: "receive from " + c.src.title(), Source: c.src.ref.name,
			Err: fmt.Errorf("the body of message %s does not agree with its MD5", h.id), Hint: "look at proxies and the server between here and SQS"})
	}
}
