package sqs

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

var _ transport.Follower = (*queueSource)(nil)

// Follow is refused: SQS has no way to read a message without receiving it.
func (s *queueSource) Follow(context.Context) (copies transport.Source, missing string, err error) {
	return nil, "", &longshore.Error{Code: longshore.CodeUnsupported, Op: "follow " + s.title(), Source: s.ref.name,
		Err:  errors.New("SQS hides each message from all consumers as soon as one has received it, so following would take messages from them"),
		Hint: "look at waiting messages without following, or subscribe a second queue to the SNS topic and consume that"}
}
