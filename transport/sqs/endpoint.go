package sqs

import (
	"context"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
)

// remembered answers for the last parameters without asking the SDK's rules again:
// those of a client do not change, and the rules are gone through, and the URL is
// parsed, with every call.
type remembered struct {
	next awssqs.EndpointResolverV2  // the SDK's own, or the user's
	last atomic.Pointer[resolution] // the last answer
}

type resolution struct {
	region, endpoint string                   // what was asked
	fips, dual       bool                     // asked too
	at               smithyendpoints.Endpoint // the answer
}

// ResolveEndpoint implements the SDK's interface. The SDK reads the answer, and
// changes no more than its own copy of the URL.
func (r *remembered) ResolveEndpoint(ctx context.Context, p awssqs.EndpointParameters) (smithyendpoints.Endpoint, error) {
	k := resolution{region: aws.ToString(p.Region), endpoint: aws.ToString(p.Endpoint), fips: aws.ToBool(p.UseFIPS), dual: aws.ToBool(p.UseDualStack)}
	if l := r.last.Load(); l != nil && l.region == k.region && l.endpoint == k.endpoint && l.fips == k.fips && l.dual == k.dual {
		return l.at, nil
	}
	at, err := r.next.ResolveEndpoint(ctx, p)
	if err == nil {
		k.at = at
		r.last.Store(&k)
	}
	return at, err
}
