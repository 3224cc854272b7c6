package urls

import (
	"net/url"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/edit"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
)

// sqs://name?region=r&endpoint=https://host&visibility=30s&envelope=sns; the name may
// be an ARN, or https://host/account/name percent-encoded.
func sqsScheme() scheme {
	return scheme{names: []string{"sqs"}, form: "sqs://name?region=eu-west-1", open: openSQS,
		params: []string{"region", "endpoint", "visibility", "envelope", "declare", "browse_counts"}}
}

func openSQS(a *address, o Options) (transport.Source, error) {
	a.noPassword(o)
	name, err := url.PathUnescape(strings.TrimSuffix(a.place, "/"))
	if err != nil || name == "" {
		return nil, &longshore.Error{Code: longshore.CodeBadAddress, Op: "source URL of the form " + a.form,
			Hint: "name a queue after sqs://, or its ARN or URL percent-encoded"}
	}
	cfg := sqs.QueueConfig{BrowseCounts: a.choice("browse_counts", "true", "false") == "true" || o.BrowseCounts, Envelope: sqs.Envelope(a.choice("envelope", string(sqs.SNS), string(sqs.EventBridge)))}
	if a.values.Has("visibility") {
		text := a.take("visibility")
		if cfg.VisibilityTimeout, err = time.ParseDuration(text); err != nil || cfg.VisibilityTimeout <= 0 {
			a.bad(problem.OutOfRange, "visibility", "is not a time greater than 0", edit.TimeHint(text))
			cfg.VisibilityTimeout = 0
		}
	}
	if a.choice("declare", "true", "false") == "true" {
		cfg.Declare.Attributes = map[string]string{}
	}
	return sqs.New(sqs.Config{Region: a.take("region"), Endpoint: a.take("endpoint")}).Queue(name, cfg), nil
}
