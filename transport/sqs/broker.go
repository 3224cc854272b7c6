package sqs

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"

	"github.com/longshore-go/longshore"
)

// Broker is an account's SQS as seen through one configuration. Its connections
// are opened by the first user and closed by the last. It is safe for concurrent
// use.
type Broker struct {
	cfg     Config  // as given
	origins origins // where its queues live; a name among local addresses never means AWS

	mu       sync.Mutex               // guards what follows
	sdk      *sdkConfig               // nil: not read yet
	attempts map[string]*attempts     // by queue as it was named: its sources share what they know
	users    int                      // of the clients; the last one closes the connections
	renewed  int                      // how often credentials were thrown away
	clients  map[place]*awssqs.Client // one for each region and endpoint
	pool     *http.Transport          // of the clients; nil without users, or if it is not ours
}

// sdkConfig is what the SDK's chain says.
type sdkConfig struct {
	aws   aws.Config            // loaded once, because profiles and roles take time
	env   place                 // region and endpoint of environment and profile
	creds *aws.CredentialsCache // shared by all clients, so that a refusal renews them for all
	err   error                 // why it could not be read; every call returns it
}

// New makes a broker. It does no I/O; what is wrong with the configuration is
// reported by container.New, and by Open and Publisher.
func New(cfg Config) *Broker { return &Broker{cfg: cfg} }

// String names the broker without credentials.
func (b *Broker) String() string {
	if b.cfg.Endpoint == "" {
		return strings.TrimSpace("sqs " + b.cfg.Region)
	}
	u, err := url.Parse(b.cfg.Endpoint)
	if err != nil {
		return "sqs at an endpoint that cannot be read"
	}
	return "sqs at " + u.Scheme + "://" + u.Host // what else is in it may be secret
}

// GoString is String: a Broker holds secrets that no format may show.
func (b *Broker) GoString() string { return b.String() }

// chain reads the SDK's configuration once: environment and files, no network.
func (b *Broker) chain() *sdkConfig {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.chainLocked()
}

// chainLocked loads the SDK's configuration once, and remembers where the region comes from, for
// errors about it. An error is kept too: files and environment are not read again.
func (b *Broker) chainLocked() *sdkConfig {
	if b.sdk != nil {
		return b.sdk
	}
	b.sdk = &sdkConfig{}
	if err := b.cfg.check(); err != nil {
		b.sdk.err = err
		return b.sdk
	}
	s := b.sdk
	// What the SDK writes on its own to stderr says nothing that our errors do not.
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if b.cfg.Credentials != nil {
		load = append(load, config.WithCredentialsProvider(b.cfg.Credentials))
	}
	cfg, err := config.LoadDefaultConfig(context.Background(), load...)
	if err != nil {
		s.err = &longshore.Error{Code: longshore.CodeConfig, Op: "read the AWS configuration", Err: err,
			Hint: "check AWS_PROFILE, AWS_CONFIG_FILE and AWS_CA_BUNDLE"}
		return s
	}
	s.aws, s.env = cfg, place{region: cfg.Region, regionFrom: "the profile"}
	for _, name := range []string{"AWS_DEFAULT_REGION", "AWS_REGION"} {
		if os.Getenv(name) == cfg.Region {
			s.env.regionFrom = name
		}
	}
	// The SDK knows how the endpoint's variables and profile fields go together.
	if e := awssqs.NewFromConfig(cfg).Options().BaseEndpoint; e != nil {
		s.env.endpoint = *e
	}
	switch creds := cfg.Credentials.(type) {
	case nil:
	case *aws.CredentialsCache:
		s.creds = creds
	default:
		s.creds = aws.NewCredentialsCache(creds)
	}
	return s
}

// acquire returns a client for a place. Whoever got one without an error calls
// release.
func (b *Broker) acquire(p place) (*awssqs.Client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.chainLocked()
	if s.err != nil {
		return nil, s.err
	}
	b.users++
	if c := b.clients[p]; c != nil {
		return c, nil
	}
	client := b.cfg.HTTPClient
	if client == nil {
		if b.pool == nil {
			b.pool = newPool(s.aws.HTTPClient)
		}
		client = &http.Client{Transport: b.pool, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	c := awssqs.NewFromConfig(s.aws, func(o *awssqs.Options) {
		o.Region = p.region
		o.BaseEndpoint = nil
		if p.endpoint != "" {
			o.BaseEndpoint = aws.String(p.endpoint)
		}
		o.EndpointResolverV2 = &remembered{next: o.EndpointResolverV2}
		o.HTTPClient = wholeBody{client}
		// What is worth repeating is known here, call by call.
		o.RetryMaxAttempts = 1
		o.Retryer = aws.NopRetryer{}
		if s.creds != nil {
			o.Credentials = s.creds
		}
		o.APIOptions = append(o.APIOptions, again{b}.add)
		for _, f := range b.cfg.Options {
			f(o)
		}
	})
	if b.clients == nil {
		b.clients = map[place]*awssqs.Client{}
	}
	b.clients[p] = c
	return c, nil
}

// attemptsOf holds the known facts about a queue's messages. All sources of the queue share it:
// what one container returned is known to another in the same process.
func (b *Broker) attemptsOf(queue string) *attempts {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attempts == nil {
		b.attempts = map[string]*attempts{}
	}
	a := b.attempts[queue]
	if a == nil {
		a = newAttempts()
		b.attempts[queue] = a
	}
	return a
}

// release closes the connections behind the last user.
func (b *Broker) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.users--; b.users > 0 {
		return
	}
	b.clients = nil
	if b.pool != nil {
		b.pool.CloseIdleConnections()
		b.pool = nil
	}
}

// wireBuffer holds a batch of small messages or receipts, so that a request is one
// write and an answer one read.
const wireBuffer = 16 << 10

// newPool is a transport with the SDK's settings, the CA bundle among them, and
// room for as many connections as there are polls and batches.
func newPool(client aws.HTTPClient) *http.Transport {
	t := awshttp.NewBuildableClient().GetTransport()
	if built, ok := client.(*awshttp.BuildableClient); ok {
		t = built.GetTransport()
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 128
	t.ReadBufferSize, t.WriteBufferSize = wireBuffer, wireBuffer
	return t
}

// wholeBody hides that a request's body can write itself. The SDK closes the body
// as soon as the answer begins; net/http, still in the body's WriteTo at that
// moment, takes the end for a failed write and cuts the connection in the
// middle of the answer, which loses what a receive handed out.
type wholeBody struct{ next awssqs.HTTPClient }

func (c wholeBody) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = plainBody{r.Body}
	}
	return c.next.Do(r)
}

type plainBody struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
}

func (b plainBody) Read(p []byte) (int, error) { return b.body.Read(p) }
func (b plainBody) Close() error               { return b.body.Close() }
