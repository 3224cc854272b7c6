package sqs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-J01: connecting fails in many ways; neither the secret key nor the session token nor
// a password in an endpoint is in what comes of it, in no form.
func TestNoSecretInAnyText(t *testing.T) {
	t.Parallel()
	const canary = "c@nary:s3cret/%?#"
	encoded := url.QueryEscape(canary)
	s := sqstest.New(t)
	s.CreateQueue(t, "orders", nil)
	s.AllowKeys("somebody-else")
	port := strings.TrimPrefix(s.URL, "http://")
	for _, endpoint := range []string{
		s.URL, "http://127.0.0.1:1", "https://" + port, "http://no-such-host.invalid", "http://user:" + encoded + "@" + port, "http://user:" + encoded + "@127.0.0.1:1",
		"http://user:" + canary + "@" + port, "http://" + port + "/?key=" + encoded, "ftp://user:" + encoded + "@h", "user:" + encoded + "@h", "http://u:" + encoded + "@h:port", "http://u:%zz" + canary + "@h",
	} {
		for _, queue := range []string{"orders", s.URL + "/000000000000/orders", "http://u:" + encoded + "@" + port + "/000000000000/orders"} {
			for _, region := range []string{"us-east-1", ""} {
				b := sqs.New(sqs.Config{Region: region, Endpoint: endpoint, Credentials: sqs.Keys("AKID", transport.Static(canary), transport.Static(canary)), HTTPClient: newTransport(t)})
				for _, out := range textsOf(t, b, queue) {
					for _, form := range []string{canary, encoded, url.PathEscape(canary), base64.StdEncoding.EncodeToString([]byte(canary)), "s3cret"} {
						if strings.Contains(out, form) {
							t.Errorf("endpoint %q, queue %q: %q is in %s", endpoint, queue, form, out)
						}
					}
				}
			}
		}
	}
}

// textsOf is what a broker that cannot be reached says.
func textsOf(t *testing.T, b *sqs.Broker, queue string) []string {
	t.Helper()
	src := b.Queue(queue, sqs.QueueConfig{})
	c, err := src.Open(t.Context(), transport.OpenOptions{})
	if err == nil {
		_ = c.Close(t.Context())
		t.Errorf("opened %q", queue)
	}
	checked := src.(transport.Checker).Check()          //nolint:errcheck // it is one
	probed := src.(transport.Prober).Probe(t.Context()) //nolint:errcheck // it is one
	p, perr := b.Publisher(sqs.PublisherConfig{})
	if perr == nil {
		perr = p.Publish(t.Context(), queue, &longshore.Message{Body: []byte("x")})
		_ = p.Close(t.Context())
	}
	return []string{fmt.Sprintf("%v %+v", err, err), fmt.Sprint(checked, probed, perr), fmt.Sprintf("%v %+v %#v %s", b, b, b, b),
		fmt.Sprintf("%+v", src.(transport.Describer).Describe())} //nolint:errcheck // it is one
}

// F-J02: the server is verified by the name of the endpoint, with the authorities of
// AWS_CA_BUNDLE, and what is wrong is said.
func TestPeersAreVerified(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ours.cert.Raw}), 0o600))
	t.Setenv("AWS_CA_BUNDLE", bundle)
	soon := time.Now().Add(time.Hour)
	s := sqstest.New(t)
	s.CreateQueue(t, "orders", nil)
	for what, c := range map[string]struct {
		cert tls.Certificate
		text string // "" = accepted
	}{
		"right":                                 {ours.issue(t, soon, "127.0.0.1"), ""},
		"right for another address":             {ours.issue(t, soon, "10.1.1.1"), "valid for 10.1.1.1, not 127.0.0.1"},
		"right for a name, not for the address": {ours.issue(t, soon, "localhost"), "doesn't contain any IP SANs"},
		"expired":                               {ours.issue(t, time.Now().Add(-time.Minute), "127.0.0.1"), "expired"},
		"from somebody else":                    {others.issue(t, soon, "127.0.0.1"), "unknown authority"},
		"signed by itself":                      {(*authority)(nil).issue(t, soon, "127.0.0.1"), "unknown authority"},
	} {
		srv := httptest.NewUnstartedServer(s)
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{c.cert}, MinVersion: tls.VersionTLS12}
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		b := sqs.New(sqs.Config{Region: "us-east-1", Endpoint: srv.URL, Credentials: sqs.Keys("x", transport.Static("x"), transport.Secret{})})
		con, err := b.Queue("orders", sqs.QueueConfig{}).Open(t.Context(), transport.OpenOptions{})
		if err == nil {
			must(t, con.Close(t.Context()))
		}
		switch {
		case c.text == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.text != "" && (!errors.Is(err, longshore.CodeTLS) || !strings.Contains(err.Error(), c.text)):
			t.Errorf("%s: %v, want tls and %q", what, err, c.text)
		}
		srv.Close()
	}
}

// F-K03: an endpoint on an address of IPv6.
func TestEndpointOfIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	s := sqstest.New(t)
	s.CreateQueue(t, "orders", nil)
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}}
	srv.Start()
	defer srv.Close()
	b := sqs.New(sqs.Config{Region: "us-east-1", Endpoint: "http://" + l.Addr().String(), Credentials: sqs.Keys("x", transport.Static("x"), transport.Secret{}), HTTPClient: newTransport(t)})
	publish(t, b, "orders", "", "one")
	c := open(t, b.Queue("orders", sqs.QueueConfig{}), nil)
	must(t, take(t, c, 1)[0].Ack(t.Context()))
	must(t, c.Close(t.Context()))
}

// authority signs certificates. The nil one has each sign itself.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	c := (*authority)(nil).issue(t, time.Now().Add(time.Hour), "authority")
	return &authority{c.Leaf, c.PrivateKey.(*ecdsa.PrivateKey)} //nolint:errcheck // it is one
}

func (a *authority) issue(t *testing.T, expires time.Time, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: expires,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(name); ip != nil {
		tpl.IPAddresses = []net.IP{ip}
	} else {
		tpl.DNSNames = []string{name}
	}
	parent, signer := tpl, key
	if a != nil {
		parent, signer = a.cert, a.key
	} else if name == "authority" {
		tpl.IsCA, tpl.BasicConstraintsValid = true, true
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, parent, &key.PublicKey, signer)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
