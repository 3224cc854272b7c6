package config

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

const withCertificate = `
brokers:
  b: {url: %q, tls: {ca_file: %q, cert_file: %q, key_file: %q}}
containers:
  orders: {source: {broker: b, %s}, dead_letter: {policy: keep}}
`

// F-J03: a renewed client certificate is used from the next connection on. While its
// two files do not belong together, as in the middle of a renewal, connecting fails.
func TestRenewedClientCertificateIsUsedAtTheNextConnection(t *testing.T) {
	ca := newAuthority(t)
	for broker, start := range map[string]func(*testing.T, *tls.Config) (url, source string){"rabbitmq": secureRabbit, "kafka": secureKafka} {
		t.Run(broker, func(t *testing.T) {
			var seen clients
			at, source := start(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "server").pair(t)}, ClientCAs: ca.pool(),
				ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12, VerifyConnection: seen.note})
			dir := t.TempDir()
			file := func(name string, content []byte) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			first, second := ca.issue(t, "first"), ca.issue(t, "second")
			cert, key := file("client.pem", first.cert), file("client.key", first.key)
			cfg := load(t, nowhere(), fmt.Sprintf(withCertificate, at, file("ca.pem", ca.cert), cert, key, source))
			src, err := cfg.Source("orders")
			if err != nil {
				t.Fatal(err)
			}
			if err := connect(src); err != nil {
				t.Fatal(err)
			}
			file("client.pem", second.cert)
			if err := connect(src); !errors.Is(err, longshore.CodeTLS) || !strings.Contains(err.Error(), "cert_file cannot be used") {
				t.Errorf("with a certificate and the key of another one: %v", err)
			}
			file("client.key", second.key)
			if err := connect(src); err != nil {
				t.Errorf("with the renewed certificate: %v", err)
			}
			if got := seen.inOrder(); !slices.Equal(got, []string{"first", "second"}) {
				t.Errorf("the broker saw %q", got)
			}
		})
	}
}

func secureRabbit(t *testing.T, c *tls.Config) (url, source string) {
	return "amqps://guest:guest@" + amqptest.New(t, amqptest.Config{TLS: c}).Addr, "queue: orders, declare: {type: classic}"
}

func secureKafka(t *testing.T, c *tls.Config) (url, source string) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.TLS(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return "kafkas://" + cluster.ListenAddrs()[0], "topics: [orders], group: billing"
}

func connect(src transport.Source) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := src.Open(ctx, transport.OpenOptions{})
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// clients are those that a server has seen.
type clients struct {
	mu    sync.Mutex
	names []string
}

func (c *clients) note(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("no client certificate")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, s.PeerCertificates[0].Subject.CommonName)
	return nil
}

// inOrder leaves out what is repeated: some clients make several connections.
func (c *clients) inOrder() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Compact(slices.Clone(c.names))
}

// authority signs certificates; all are in PEM.
type authority struct {
	signer *x509.Certificate
	secret *ecdsa.PrivateKey
	cert   []byte
}

type issued struct{ cert, key []byte }

func (i issued) pair(t *testing.T) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(i.cert, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	made := a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true})
	a.cert = made.cert
	return a
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.signer)
	return p
}

func (a *authority) issue(t *testing.T, name string) issued {
	t.Helper()
	return a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
}

// sign makes a certificate; the first one of an authority is its own.
func (a *authority) sign(t *testing.T, tpl *x509.Certificate) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl.SerialNumber, tpl.NotBefore, tpl.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	own := a.signer == nil
	if own {
		a.signer, a.secret = tpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, a.signer, &key.PublicKey, a.secret)
	if err != nil {
		t.Fatal(err)
	}
	if own {
		if a.signer, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})}
}
