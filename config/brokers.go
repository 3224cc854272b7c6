package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs"
)

// broker is one of the four; the others are nil.
type broker struct {
	rabbit *amqp.Broker
	kafka  *kafka.Broker
	sqs    *sqs.Broker
	memory *memory.Broker
}

// source is anything on the broker, to ask it what is wrong with its own settings.
func (b broker) source() transport.Source {
	if b.rabbit == nil && b.kafka == nil {
		return nil // SQS and memory have nothing that could be wrong without a queue
	}
	return b.named("check")
}

// named is a queue or a topic on the broker, to ask it about names.
func (b broker) named(name string) transport.Source {
	switch {
	case b.rabbit != nil:
		return b.rabbit.Queue(name, amqp.QueueConfig{})
	case b.kafka != nil:
		return b.kafka.Group(name, []string{name}, kafka.GroupConfig{})
	case b.sqs != nil:
		return b.sqs.Queue(name, sqs.QueueConfig{})
	}
	return b.memory.Queue(name, memory.QueueConfig{})
}

// broker makes the broker of a section.
func (l *loader) broker(s *brokerSection, shared *memory.Broker) (broker, error) {
	config, err := l.tls(s.TLS)
	b, more := l.brokerWith(s, config, shared)
	return b, errors.Join(err, more)
}

// brokerWith makes the broker of a section. A nil TLS configuration is the URL's own choice. Memory
// brokers are one and the same in the whole process: a container could not reach another one's queue.
func (l *loader) brokerWith(s *brokerSection, config *tls.Config, shared *memory.Broker) (broker, error) {
	switch kindOf(s.URL) {
	case onRabbit:
		var err error
		// The address is printed by status and doctor.
		if strings.Contains(s.Management, "@") { // a password would be printed
			err = bad("management", "leave the login out: the broker's own is used, and its user needs the tag management", "has a login in its address")
		}
		return broker{rabbit: amqp.New(s.URL, amqp.Config{User: s.User, Password: s.Password.Secret, TLS: config, Management: s.Management,
			ConnectTimeout: s.ConnectTimeout, Heartbeat: s.Heartbeat, ConnectionName: s.ConnectionName, RenewEvery: s.RenewEvery})}, err
	case onKafka:
		return l.kafka(s, config)
	case onSQS:
		return l.sqs(s)
	case onMemory:
		return broker{memory: shared}, nil
	}
	return broker{}, nil
}

// kafka makes a Kafka broker. It collects mistakes instead of returning at the first one, as all of
// this package does.
func (l *loader) kafka(s *brokerSection, config *tls.Config) (broker, error) {
	scheme, place, _ := strings.Cut(s.URL, "://")
	cfg := kafka.Config{TLS: strings.EqualFold(scheme, "kafkas"), TLSConfig: config, ClientID: s.ClientID, Rack: s.Rack, DialTimeout: s.ConnectTimeout, MaxUnpacked: int(s.MaxUnpacked)}
	var errs []error
	if s.TLS != nil && !cfg.TLS {
		errs = append(errs, problem.Conflict("tls", nil, "a url that begins with kafka", "the connection would not be encrypted", "write kafkas://, or leave tls out").Of("", ""))
	}
	// The last @ is the separator: a password may contain one that is not percent-encoded, a host cannot.
	if at := strings.LastIndexByte(place, '@'); at >= 0 {
		user, password, _ := strings.Cut(place[:at], ":")
		place = place[at+1:]
		u, err1 := url.PathUnescape(user)
		p, err2 := url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			errs = append(errs, bad("url", "use sasl: {{user: …, password: …}, which takes them as they are", "has a user or a password that is not percent-encoded"))
		}
		cfg.SASL = kafka.SASL{User: u, Password: transport.Static(p)}
	}
	// net/url takes no list of hosts, so the address is taken apart by hand.
	hosts, path, _ := strings.Cut(place, "/")
	if path != "" || strings.Contains(hosts, "?") {
		errs = append(errs, bad("url", "put topics and group into the source, and other settings into keys next to url", "has something after its hosts"))
		hosts, _, _ = strings.Cut(hosts, "?")
	}
	if s.SASL != nil {
		if s.SASL.User != "" {
			cfg.SASL.User = s.SASL.User
		}
		// Keys next to url win over the login in it: they may come from a secret store.
		if !s.SASL.Password.IsZero() {
			cfg.SASL.Password = s.SASL.Password.Secret
		}
		cfg.SASL.Mechanism = map[string]kafka.Mechanism{"": "", "plain": kafka.Plain, "scram_sha_256": kafka.ScramSHA256,
			"scram_sha_512": kafka.ScramSHA512, "oauthbearer": kafka.OAuthBearer}[s.SASL.Mechanism]
	}
	var err error
	if cfg.Outlet, err = s.Publish.outlet(); err != nil {
		errs = append(errs, err)
	}
	return broker{kafka: kafka.New(strings.Split(hosts, ","), cfg)}, errors.Join(errs...)
}

// outlet is how one publishes to Kafka.
func (s *sendSection) outlet() (kafka.PublisherConfig, error) {
	if s == nil {
		return kafka.PublisherConfig{}, nil
	}
	cfg := kafka.PublisherConfig{Timeout: s.Timeout, Linger: s.Linger}
	var errs []error
	for _, name := range s.Compression {
		c, known := kafka.Codec(name)
		if !known {
			errs = append(errs, problem.Bad("publish.compression", "use "+strings.Join(kafka.Codecs(), ", "), "has an unknown codec %.40q", name).OfKind(problem.UnknownWord).Of("", ""))
		}
		cfg.Compression = append(cfg.Compression, c)
	}
	// The client takes an int32; a larger number would become a negative one.
	if s.BatchBytes < 0 || s.BatchBytes > 1<<30 {
		errs = append(errs, problem.Range("publish.batch_bytes", s.BatchBytes, "from 1 to %d", 1<<30).Of("", ""))
	} else {
		cfg.MaxBatchBytes = int32(s.BatchBytes)
	}
	// Anything else stays at all replicas in sync: losing records takes a word in the file.
	if s.Acks == "leader" {
		cfg.Acks = kafka.AcksLeader
	}
	if s.Partitioner != "" {
		cfg.Partitioner = kafka.PartitionBy(s.Partitioner)
	}
	return cfg, errors.Join(errs...)
}

// sqs makes an SQS broker. Half of a pair of keys is refused: the SDK would fall back to another
// identity without a word.
func (l *loader) sqs(s *brokerSection) (broker, error) {
	var errs []error
	if _, rest, _ := strings.Cut(s.URL, "://"); rest != "" {
		errs = append(errs, bad("url", "write sqs:// alone: region and endpoint are keys next to url, and the queue belongs to the source", "has something after sqs://"))
	}
	cfg := sqs.Config{Region: s.Region, Endpoint: s.Endpoint}
	switch {
	case s.AccessKeyID != "" && s.SecretKey.IsZero():
		errs = append(errs, bad("access_key_id", "add secret_access_key: env:NAME", "is set without secret_access_key"))
	case s.AccessKeyID == "" && (!s.SecretKey.IsZero() || !s.SessionToken.IsZero()):
		errs = append(errs, problem.Required("access_key_id", "add it next to secret_access_key, or leave all of them out to use the SDK's credential chain").Of("", ""))
	case s.AccessKeyID != "":
		cfg.Credentials = sqs.Keys(s.AccessKeyID, s.SecretKey.Secret, s.SessionToken.Secret)
	}
	return broker{sqs: sqs.New(cfg)}, errors.Join(errs...)
}

// bad is one mistake in a broker's section.
func bad(field, hint, what string) error {
	return problem.Bad(field, hint, "%s", what).Of("", "")
}

// tls reads the authorities now and the client's certificate at each connect, so that a
// renewed one is used.
func (on *surroundings) tls(s *tlsSection) (*tls.Config, error) {
	if s == nil {
		return nil, nil
	}
	cfg := &tls.Config{ServerName: s.ServerName, MinVersion: tls.VersionTLS12}
	return cfg, errors.Join(on.authorities(cfg, s), on.certificate(cfg, s))
}

// authorities reads the trusted certificates once: they change rarely, and a file that has become
// unreadable must not end a running service.
func (on *surroundings) authorities(cfg *tls.Config, s *tlsSection) error {
	if s.CAFile == "" {
		return nil
	}
	pem, err := os.ReadFile(on.beside(s.CAFile))
	if err != nil {
		return problem.Bad("tls.ca_file", "paths are relative to the configuration file", "cannot be read").Because(plain(err)).Of("", "")
	}
	if cfg.RootCAs = x509.NewCertPool(); !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return bad("tls.ca_file", "give a PEM file", "contains no certificate")
	}
	return nil
}

// certificate loads the client's certificate now, so that a wrong one is a mistake of the configuration,
// and again at each connect, so that a renewed one is used.
func (on *surroundings) certificate(cfg *tls.Config, s *tlsSection) error {
	if (s.CertFile == "") != (s.KeyFile == "") {
		return bad("tls.cert_file", "give both or neither", "and tls.key_file go together")
	}
	if s.CertFile == "" {
		return nil
	}
	// Read at each handshake: certificates are renewed by other programs while this one runs.
	load := func() (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(on.beside(s.CertFile), on.beside(s.KeyFile))
		if err != nil {
			return nil, fmt.Errorf("cert_file cannot be used: %w", plain(err))
		}
		return &c, nil
	}
	if _, err := load(); err != nil {
		return problem.Bad("tls.cert_file", "give the PEM files of a certificate and of its key; paths are relative to the configuration file", "cannot be used").Because(errors.Unwrap(err)).Of("", "")
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return nil
}
