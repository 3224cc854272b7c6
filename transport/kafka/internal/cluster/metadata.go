package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The client repeats its own metadata requests for half a minute and returns what it has
// cached. An opening needs one fresh answer soon, or the reason why there is none.

// Metadata asks for topics by name; with no names it asks for none, which is the shortest
// question.
func Metadata(ctx context.Context, cl *kgo.Client, topics ...string) (*kmsg.MetadataResponse, error) {
	asked := []kmsg.MetadataRequestTopic{} // nil would ask for all
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		asked = append(asked, t)
	}
	return metadata(ctx, cl, asked)
}

// AllMetadata asks for all topics.
func AllMetadata(ctx context.Context, cl *kgo.Client) (*kmsg.MetadataResponse, error) {
	return metadata(ctx, cl, nil)
}

func metadata(ctx context.Context, cl *kgo.Client, topics []kmsg.MetadataRequestTopic) (*kmsg.MetadataResponse, error) {
	resp, err := First(ctx, cl, func() kmsg.Request {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = topics
		return req
	})
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.MetadataResponse), nil //nolint:errcheck,forcetypeassert // the answer to this request
}

// Probe asks any broker for an answer. What the answer says does not matter.
func Probe(ctx context.Context, cl *kgo.Client) error {
	_, err := Metadata(ctx, cl)
	return err
}

// Coordinated asks for a group's coordinator, so that a group that may not be used is
// refused at once. A coordinator that is not available yet is not an error.
func Coordinated(ctx context.Context, cl *kgo.Client, group string) error {
	answer, err := First(ctx, cl, func() kmsg.Request {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey, req.CoordinatorKeys = group, []string{group}
		return req
	})
	if err != nil {
		return err
	}
	resp := answer.(*kmsg.FindCoordinatorResponse) //nolint:errcheck,forcetypeassert // the answer to this request
	code := resp.ErrorCode
	for _, c := range resp.Coordinators {
		code = c.ErrorCode
	}
	if err := kerr.ErrorForCode(code); err != nil && !kerr.IsRetriable(err) {
		return err
	}
	return nil
}
