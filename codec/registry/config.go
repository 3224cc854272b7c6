package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Kind is the kind of a schema, as the registry spells it.
type Kind string

// The kinds. A schema for which the registry names none is Avro.
const (
	Avro     Kind = "AVRO"
	Protobuf Kind = "PROTOBUF"
	JSON     Kind = "JSON"
)

// Config is where the registry is and who reads what.
type Config struct {
	// URLs of the registry; the next is asked where one does not answer. Credentials do
	// not belong in them.
	URLs []string
	// User and Password log in, where User is set. The password is asked for at each
	// request.
	User     string
	Password transport.Secret
	// Client is for TLS and proxies; nil: one with Go's defaults.
	Client *http.Client
	// Timeout ends one look-up, all URLs together; 0 = 5 s.
	Timeout time.Duration
	// CacheSize is the number of schemas that are kept; the least used goes first. Ids
	// never change their meaning, so they do not expire. 0 = 1,000.
	CacheSize int
	// Unknown is how long an id that the registry does not have is remembered; 0 = 1 min.
	// A schema that is registered later is found after it.
	Unknown time.Duration
	// Codecs read and write what follows the header. At least one.
	Codecs map[Kind]longshore.Codec
	// Subject names the subject under which a message is written, with its latest
	// schema; nothing is registered. It runs in each Encode, maybe many at once.
	// nil: the codec only reads.
	Subject func(m *longshore.Message) string
	// Refresh is how long a subject's latest schema is used before it is asked for
	// again; 0 = 5 min. While the registry is away the last one goes on.
	Refresh time.Duration
}

const (
	defaultTimeout = 5 * time.Second
	defaultCache   = 1000
	defaultRefresh = 5 * time.Minute
	defaultUnknown = time.Minute
)

// New makes a codec; it does not ask the registry. Every mistake in cfg is reported
// at once ([longshore.CodeConfig]).
func New(cfg Config) (*Codec, error) {
	if err := cfg.check(); err != nil {
		return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "make the schema registry codec", Err: err}
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.CacheSize == 0 {
		cfg.CacheSize = defaultCache
	}
	if cfg.Refresh == 0 {
		cfg.Refresh = defaultRefresh
	}
	if cfg.Unknown == 0 {
		cfg.Unknown = defaultUnknown
	}
	c := &Codec{cfg: cfg, ids: newCache[identity](cfg.CacheSize), subjects: newCache[string](cfg.CacheSize)}
	var err error
	if c.client, err = sr.NewClient(sr.URLs(cfg.URLs...), sr.HTTPClient(cfg.Client), sr.UserAgent("longshore"), sr.PreReq(c.login)); err != nil {
		return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "make the schema registry codec", Err: err}
	}
	return c, nil
}

func (cfg *Config) check() error {
	var errs []error
	if len(cfg.URLs) == 0 {
		errs = append(errs, errors.New("no URLs; name the registry, like http://registry:8081"))
	}
	for i, text := range cfg.URLs {
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https": // the text may hold a password
			errs = append(errs, fmt.Errorf("URLs[%d] is not an http or https URL", i))
		case u.User != nil:
			errs = append(errs, fmt.Errorf("URLs[%d] holds credentials; set User and Password", i))
		}
	}
	if len(cfg.Codecs) == 0 {
		errs = append(errs, errors.New("no Codecs; name a codec for each kind of schema"))
	}
	for kind, codec := range cfg.Codecs {
		if kind != Avro && kind != Protobuf && kind != JSON || codec == nil {
			errs = append(errs, fmt.Errorf("the kind %q of Codecs is not known, or its codec is nil", kind))
		}
	}
	if cfg.Timeout < 0 || cfg.CacheSize < 0 || cfg.Refresh < 0 || cfg.Unknown < 0 {
		errs = append(errs, errors.New("one of Timeout, CacheSize, Refresh and Unknown is negative"))
	}
	return errors.Join(errs...)
}

func (c *Codec) login(r *http.Request) error {
	if c.cfg.User == "" {
		return nil
	}
	password, err := c.cfg.Password.Get(r.Context())
	if err == nil {
		r.SetBasicAuth(c.cfg.User, password)
	}
	return err
}
