package amqptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

func TestWhoMayLogIn(t *testing.T) {
	s := New(t, Config{VHosts: []string{"/", "orders"}, Users: []User{
		{Name: "ann", Password: "s3/cr:et@"}, {Name: "bob", Password: "b", VHosts: []string{"orders"}},
	}})
	open(t, dial(t, s.URL)) // the first user's credentials, escaped
	for _, c := range []struct {
		user, password, vhost string
		code                  int
		reason                string
	}{
		{"bob", "b", "/orders", 0, ""},
		{"bob", "wrong", "/orders", 403, "username or password not allowed"},
		{"eve", "b", "/orders", 403, "username or password not allowed"},
		{"bob", "b", "/%2f", 530, "NOT_ALLOWED - access to vhost '/' refused for user 'bob'"},
		{"bob", "b", "/none", 530, "NOT_ALLOWED - vhost none not found"},
	} {
		conn, err := amqp091.Dial("amqp://" + c.user + ":" + c.password + "@" + s.Addr + c.vhost)
		if err == nil {
			_ = conn.Close()
		}
		if code(err) != c.code || err != nil && !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s at %s: %v, want %d", c.user, c.vhost, err, c.code)
		}
	}
}

func TestChangingThePassword(t *testing.T) {
	s := New(t)
	conn := dial(t, s.URL)
	s.SetPassword("guest", "new")
	if _, err := amqp091.Dial(s.URL); code(err) != 403 {
		t.Errorf("the old password: %v", err)
	}
	if err := conn.UpdateSecret("new", "rotated"); err != nil {
		t.Error(err)
	}
	if got := s.Connections()[0].Secret; got != "new" {
		t.Errorf("secret %q", got)
	}
	dial(t, strings.Replace(s.URL, "guest:guest", "guest:new", 1))
}

func TestPermissions(t *testing.T) {
	s := New(t, Config{Users: []User{
		{Name: "guest", Password: "guest", Configure: "^own", Write: "^own", Read: "^own"}, {Name: "admin", Password: "a"},
	}})
	admin := open(t, dial(t, strings.Replace(s.URL, "guest:guest", "admin:a", 1)))
	declare(t, admin, "theirs", nil)
	conn := dial(t, s.URL)
	for what, op := range map[string]func(ch *amqp091.Channel) error{
		"declare": func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclare("foreign", true, false, false, false, nil)
			return err
		},
		"consume": func(ch *amqp091.Channel) error {
			_, err := ch.Consume("theirs", "", false, false, false, false, nil)
			return err
		},
		"get":    func(ch *amqp091.Channel) error { _, _, err := ch.Get("theirs", true); return err },
		"purge":  func(ch *amqp091.Channel) error { _, err := ch.QueuePurge("theirs", false); return err },
		"delete": func(ch *amqp091.Channel) error { _, err := ch.QueueDelete("theirs", false, false, false); return err },
		"bind":   func(ch *amqp091.Channel) error { return ch.QueueBind("theirs", "k", "amq.direct", false, nil) },
	} {
		if err := op(open(t, conn)); code(err) != 403 {
			t.Errorf("%s: %v, want 403", what, err)
		}
	}
	ch := open(t, conn)
	closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
	declare(t, ch, "own", nil)
	publish(t, ch, "", "own", text("m"))
	if e := next(t, closed); e.Code != 403 {
		t.Errorf("publish: %v", e)
	}
}

// F-K01
func TestAnyCharacterInThePassword(t *testing.T) {
	for r := rune(' '); r < 0x7f; r++ {
		password := "a" + string(r) + "ü"
		s := New(t, Config{Users: []User{{Name: "u" + string(r), Password: password}}})
		conn, err := amqp091.Dial(s.URL)
		if err != nil {
			t.Errorf("%q: %v", password, err)
			continue
		}
		_ = conn.Close()
		_ = s.Close()
	}
}

// authority makes certificates for the tests of TLS.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, pool: x509.NewCertPool()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true,
		BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) issue(name string) tls.Certificate {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLSWithPasswordAndWithCertificate(t *testing.T) {
	ca := newAuthority(t)
	s := New(t, Config{
		TLS:   &tls.Config{Certificates: []tls.Certificate{ca.issue("server")}, ClientCAs: ca.pool, ClientAuth: tls.VerifyClientCertIfGiven},
		Users: []User{{Name: "guest", Password: "guest"}, {Name: "robot", Password: "never"}},
	})
	if u, _ := url.Parse(s.URL); u.Scheme != "amqps" {
		t.Errorf("URL %s", u.Redacted())
	}
	trust := &tls.Config{RootCAs: ca.pool}
	conn, err := amqp091.DialTLS(s.URL, trust)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	declare(t, open(t, conn), "q", nil)

	external := amqp091.Config{SASL: []amqp091.Authentication{&amqp091.ExternalAuth{}}, TLSClientConfig: trust.Clone()}
	if _, err := amqp091.DialConfig(s.URL, external); code(err) != 403 {
		t.Errorf("EXTERNAL without a certificate: %v", err)
	}
	external.TLSClientConfig.Certificates = []tls.Certificate{ca.issue("robot")}
	robot, err := amqp091.DialConfig(s.URL, external)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = robot.Close() }()
	if got := s.Connections()[1].User; got != "robot" {
		t.Errorf("logged in as %q", got)
	}
	s.Cut(nil)
}
