package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

func tryOpen(t testing.TB, b *kafka.Broker) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := b.Group("g", []string{"orders"}, kafka.GroupConfig{}).Open(ctx, transport.OpenOptions{})
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// Each mechanism logs in, and is refused with its code. F-K01: any character in a
// password.
func TestLogins(t *testing.T) {
	t.Parallel()
	const password = `p@ss:/?#[]%+& "'\ü`
	for _, m := range []kafka.Mechanism{kafka.Plain, kafka.ScramSHA256, kafka.ScramSHA512} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			c := fake(t, kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser(string(m), "app", password))
			login := func(user, password string) error {
				return tryOpen(t, kafka.New(c.ListenAddrs(), kafka.Config{SASL: kafka.SASL{Mechanism: m, User: user, Password: transport.Static(password)}}))
			}
			if err := login("app", password); err != nil {
				t.Errorf("right: %v", err)
			}
			if err := login("app", "wrong"); !errors.Is(err, longshore.CodeAuth) {
				t.Errorf("wrong password: %v", err)
			}
			if err := login("nobody", password); !errors.Is(err, longshore.CodeAuth) {
				t.Errorf("unknown user: %v", err)
			}
			if err := tryOpen(t, kafka.New(c.ListenAddrs(), kafka.Config{})); !errors.Is(err, longshore.CodeAuth) {
				t.Errorf("no login: %v", err)
			}
		})
	}
}

// F-J03: the secret is asked for at each connect.
func TestPasswordIsAskedEachTime(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "two"))
	var current atomic.Pointer[string]
	set := func(s string) { current.Store(&s) }
	set("one")
	b := kafka.New(c.ListenAddrs(), kafka.Config{SASL: kafka.SASL{User: "app", Password: transport.Func("a test",
		func(context.Context) (string, error) { return *current.Load(), nil })}})
	if err := tryOpen(t, b); !errors.Is(err, longshore.CodeAuth) {
		t.Errorf("the old password: %v", err)
	}
	set("two")
	if err := tryOpen(t, b); err != nil {
		t.Errorf("the new password: %v", err)
	}
}

// F-J01: no error and no format shows the password.
func TestNoSecretInAnyText(t *testing.T) {
	t.Parallel()
	const secret = "c4nary-p@ss/w%rd"
	locked := fake(t, kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "other"))
	open := fake(t, kfake.SeedTopics(1, "orders"))
	login := kafka.SASL{User: "app", Password: transport.Static(secret)}
	var texts []string
	for _, b := range []*kafka.Broker{
		kafka.New(locked.ListenAddrs(), kafka.Config{SASL: login}),
		kafka.New(open.ListenAddrs(), kafka.Config{SASL: login}),
		kafka.New(open.ListenAddrs(), kafka.Config{SASL: login, TLS: true}),
		kafka.New([]string{"127.0.0.1:1", "u:" + secret + "@k"}, kafka.Config{SASL: login}),
		kafka.New([]string{"127.0.0.1:1"}, kafka.Config{SASL: login}),
		kafka.New([]string{"does-not-exist.invalid"}, kafka.Config{SASL: login}),
		kafka.New(locked.ListenAddrs(), kafka.Config{SASL: kafka.SASL{Mechanism: kafka.OAuthBearer, Password: transport.Static(secret)}}),
	} {
		err := tryOpen(t, b)
		p, perr := b.Publisher(kafka.PublisherConfig{Timeout: time.Second})
		if perr == nil {
			perr = p.Publish(t.Context(), "orders", &longshore.Message{Body: []byte("x")})
			_ = p.Close(t.Context())
		}
		texts = append(texts, fmt.Sprint(err, perr), fmt.Sprintf("%v %+v %#v %s", b, b, b, b), fmt.Sprintf("%+v %#v", login, login))
	}
	for _, text := range texts {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret))} {
			// What was given as an address is quoted: it is no place for a password.
			if strings.Contains(strings.ReplaceAll(text, `"u:`+secret+`@k"`, ""), form) {
				t.Errorf("%q is in %s", form, text)
			}
		}
	}
}

// Without permission for the topic or the group: a code, and nothing else disturbed.
func TestForbidden(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	for _, f := range []kfake.Fault{
		{Keys: []kmsg.Key{kmsg.Metadata}, Topic: c.topic, Err: kerr.TopicAuthorizationFailed},
		{Keys: []kmsg.Key{kmsg.FindCoordinator}, Group: "g", Err: kerr.GroupAuthorizationFailed},
	} {
		c.fake.Fault(f)
		if err := tryOpen(t, c.broker()); !errors.Is(err, longshore.CodeForbidden) {
			t.Errorf("%v: %v", f.Err, err)
		}
	}
	if err := tryOpen(t, c.broker()); err != nil {
		t.Errorf("with permission: %v", err)
	}
	// Taken away while it runs: the consumer ends with the reason.
	c.produce(0, 1, 1, 0)
	m := open(t, c.group(kafka.GroupConfig{}))
	ack(t, m.take(1)...)
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: c.topic, Err: kerr.GroupAuthorizationFailed})
	if _, err := m.upTo(1, patience); !errors.Is(err, longshore.CodeForbidden) {
		t.Errorf("Receive: %v", err)
	}
	m.shut()
	at, _ := c.committed(0)
	if _, failed, downs := m.counts(); downs != 1 || at != 1 && failed != 1 {
		t.Errorf("committed %d, %d settlements failed, down %d times; want the ack committed or reported, and down once", at, failed, downs)
	}
}

// F-J02: each broker is verified by the name it is reached at.
func TestPeersAreVerified(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	soon := time.Now().Add(time.Hour)
	for what, c := range map[string]struct {
		cert tls.Certificate
		text string // "" = accepted
	}{
		"right":              {ours.issue(t, soon, "127.0.0.1"), ""},
		"other name":         {ours.issue(t, soon, "10.1.1.1"), "another name"},
		"expired":            {ours.issue(t, time.Now().Add(-time.Minute), "127.0.0.1"), "expired"},
		"from somebody else": {others.issue(t, soon, "127.0.0.1"), "unknown authority"},
	} {
		srv := fake(t, kfake.SeedTopics(1, "orders"), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{c.cert}, MinVersion: tls.VersionTLS12}))
		err := tryOpen(t, kafka.New(srv.ListenAddrs(), kafka.Config{TLSConfig: &tls.Config{RootCAs: ours.pool(), MinVersion: tls.VersionTLS12}}))
		switch {
		case c.text == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.text != "" && (!errors.Is(err, longshore.CodeTLS) || !strings.Contains(err.Error(), c.text)):
			t.Errorf("%s: %v, want tls and %q", what, err, c.text)
		}
	}
	plain := fake(t, kfake.SeedTopics(1, "orders"))
	if err := tryOpen(t, kafka.New(plain.ListenAddrs(), kafka.Config{TLS: true})); !errors.Is(err, longshore.CodeUnreachable) || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("TLS to a port without: %v", err)
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.key, a.cert, _ = makeCert(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true})
	return a
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func (a *authority) issue(t *testing.T, expires time.Time, address string) tls.Certificate {
	t.Helper()
	key, _, der := makeCert(t, a, &x509.Certificate{Subject: pkix.Name{CommonName: address}, NotAfter: expires,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.ParseIP(address)}})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func makeCert(t *testing.T, by *authority, tpl *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl.SerialNumber = big.NewInt(time.Now().UnixNano())
	tpl.NotBefore = time.Now().Add(-time.Hour)
	if tpl.NotAfter.IsZero() {
		tpl.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := tpl, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert, der
}
