package sqs

import (
	"context"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// Config is the configuration of a [Broker]. The zero value takes everything
// from the SDK's chain: environment, profile, the machine's role.
type Config struct {
	// Region such as "eu-west-1". It wins over the queue's own.
	Region string
	// Endpoint is the URL that every call goes to, for emulators, VPC endpoints and
	// proxies. Zero: see the package's order.
	Endpoint string
	// Credentials; [Keys] makes them of an access key. They are asked again when
	// they expire and when they are refused. Zero: the SDK's chain.
	Credentials aws.CredentialsProvider
	// HTTPClient makes the requests. Zero: one with the SDK's defaults, with
	// AWS_CA_BUNDLE and the proxy variables honoured.
	HTTPClient awssqs.HTTPClient
	// ClaimCheck holds bodies that are too large for SQS. Zero: a message that is
	// too large is refused, and one whose body is elsewhere is rejected before a
	// handler sees it: it goes to the dead-letter destination.
	ClaimCheck ClaimCheck
	// MaxClaim is the most bytes of a body that ClaimCheck loads: the pointer to it is
	// small, whatever it points to. A larger one is rejected. Zero: 64 MiB.
	MaxClaim int64
	// Options change the SDK's client at the end. Region, endpoint and credentials
	// are better set above: these do not see each queue's own.
	Options []func(*awssqs.Options)
}

// Keys are credentials of an access key. The secrets are asked when they are
// needed and again after they were refused; the session token may be zero.
func Keys(accessKeyID string, secret, sessionToken transport.Secret) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		s, err := secret.Get(ctx)
		if err != nil {
			return aws.Credentials{}, err
		}
		t, err := sessionToken.Get(ctx)
		return aws.Credentials{AccessKeyID: accessKeyID, SecretAccessKey: s, SessionToken: t, Source: "Config.Credentials"}, err
	})
}

// check finds what is wrong without looking at the environment.
func (c *Config) check() error {
	if c.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	why := ""
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		why = "is not an http or https URL with a host"
	case u.User != nil:
		why = "has a user in it; credentials are signed, not sent in the URL"
	default:
		return nil
	}
	e := problem.Bad("Endpoint", "write https://host:port", why).Of("sqs", "")
	e.Code = longshore.CodeBadAddress
	return e
}
