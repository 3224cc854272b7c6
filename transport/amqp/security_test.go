package amqp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

const canary = "c@nary:s3cret/%?#"

// F-J01: connecting fails in many ways; the password is in none of what comes of
// it, in no form.
func TestNoSecretInAnyError(t *testing.T) {
	s := embeddedSite(t, amqptest.Config{})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	encoded := url.QueryEscape(canary)
	at := strings.TrimPrefix(strings.TrimSuffix(s.url, "/"), "amqp://guest:guest@")
	password := transport.Static(canary)
	urls := []string{
		"amqp://app:" + encoded + "@" + at, "amqp://guest:" + encoded + "@" + at + "/missing", "amqp://app:" + canary + "@" + at,
		"amqp://app:" + encoded + "@127.0.0.1:1", "amqp://app:" + encoded + "@no-such-host.invalid", "amqp://app:" + encoded + "@" + silent.Addr().String(),
		"amqps://app:" + encoded + "@" + at, "amqp://app:" + encoded + "@h:port/v", "amqp://app:" + encoded + "@h:1:2", "amqp://app:" + canary,
		"http://app:" + encoded + "@h", "app:" + encoded + "@h", "amqp://app:" + encoded + "@", "amqp://app:" + encoded + "@a,,b", "amqp://app:" + encoded + "@h?heartbeat=" + encoded,
		"amqp://app:%zz" + canary + "@h", "amqp://app:" + encoded + "@[::1", "amqp://app:" + encoded + "@h/%zz", "amqp:// app:" + encoded + "@h", "amqp://" + canary,
	}
	for _, u := range urls {
		for _, cfg := range []amqp.Config{{}, {Password: password}, {User: "app", Password: password, Addresses: []string{"app:" + canary + "@x"}}} {
			cfg.ConnectTimeout = 200 * time.Millisecond
			b := amqp.New(u, cfg)
			src := b.Queue("q", amqp.QueueConfig{})
			ctx, cancel := within(patience)
			_, err := src.Open(ctx, transport.OpenOptions{})
			probe := as[transport.Prober](t, src).Probe(ctx)
			cancel()
			if err == nil || probe == nil {
				t.Errorf("connected by %q", u)
			}
			p, perr := b.Publisher(amqp.PublisherConfig{})
			if perr == nil {
				perr = publish(p, "q", body("x"))
				ctx, cancel := within(patience)
				_ = p.Close(ctx)
				cancel()
			}
			out := fmt.Sprintf("%v %+v %v %v %v %+v %#v %s %+v", err, err, probe, perr, as[transport.Checker](t, src).Check(), b, b, b, as[transport.Describer](t, src).Describe())
			text, _ := json.Marshal(b) //nolint:staticcheck // nothing may be in it
			out += string(text)
			for _, form := range []string{canary, encoded, base64.StdEncoding.EncodeToString([]byte(canary)), "s3cret"} {
				if strings.Contains(out, form) {
					t.Errorf("%q shows the password: %s", u, out)
				}
			}
		}
	}
}

// The ways to be refused have different codes.
func TestRefusedLoginsHaveTheirCodes(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		open := func(u string, cfg amqp.Config) error {
			_, err := tryOpen(t, amqp.New(u, cfg).Queue("q", amqp.QueueConfig{}), transport.OpenOptions{})
			return err
		}
		at := s.proxy.Addr()
		wants(t, "wrong password", open("amqp://"+at, amqp.Config{User: "guest", Password: transport.Static("no")}), longshore.CodeAuth, `user "guest"`, at, "from the configuration")
		wants(t, "unknown user", open("amqp://nobody:x@"+at, amqp.Config{}), longshore.CodeAuth, `user "nobody"`, "from the URL")
		wants(t, "unknown vhost", open("amqp://guest:guest@"+at+"/no-such", amqp.Config{}), longshore.CodeVhost, `"no-such"`, "530")
		wants(t, "missing queue", open(s.url, amqp.Config{}), longshore.CodeNotFound, `"q"`, "404")
		wants(t, "a secret that is not there", open("amqp://"+at, amqp.Config{User: "guest", Password: transport.Env("LONGSHORE_NO_SUCH")}), longshore.CodeAuth, "LONGSHORE_NO_SUCH")
	})
}

// F-K01 on a real broker: a user and a password for each character, and a vhost with all
// of them. Separate fields take raw text, an encoded URL works.
func TestAnyCharacterAsLoginOnRabbitMQ(t *testing.T) {
	t.Parallel()
	begin := brokertest.Name(t, "login")
	all := ` !"#$%&'()*+,-./:;<=>?@[\]^_` + "`{|}~" + `aZ09äß日€😀`
	users := map[string]string{}
	for _, c := range all {
		text := "-" + string(c) + "-"
		users[begin+text] = "pass" + text
	}
	users[begin+"-all"] = all
	vhost := begin + all
	addr := brokertest.AMQPAccounts(t, vhost, users)
	encode := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	for user, password := range users {
		for what, b := range map[string]*amqp.Broker{
			"fields": amqp.New("amqp://"+addr+"/"+encode(vhost), amqp.Config{User: user, Password: transport.Static(password)}),
			"URL":    amqp.New("amqp://"+encode(user)+":"+encode(password)+"@"+addr+"/"+encode(vhost), amqp.Config{}),
		} {
			ctx, cancel := within(patience)
			err := as[transport.Prober](t, b.Queue("no-such-queue", amqp.QueueConfig{})).Probe(ctx)
			cancel()
			if err != nil && !errors.Is(err, longshore.CodeNotFound) { // logged in, and in the vhost
				t.Errorf("%s, %q: %v", what, user, err)
			}
		}
	}
	b := amqp.New("amqp://"+addr+"/"+encode(vhost), amqp.Config{User: begin + "-all", Password: transport.Static(all)})
	open(t, b.Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}), transport.OpenOptions{}).close()
	wrong := amqp.New("amqp://"+addr+"/"+encode(vhost), amqp.Config{User: begin + "-all", Password: transport.Static(all[1:])})
	_, err := tryOpen(t, wrong.Queue("q", amqp.QueueConfig{}), transport.OpenOptions{})
	wants(t, "a password without its first character", err, longshore.CodeAuth)
}

// F-K03: a broker on an address of IPv6.
func TestBrokerOfIPv6(t *testing.T) {
	t.Parallel()
	srv := amqptest.New(t, amqptest.Config{})
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("no IPv6 here:", err)
	} else if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	at := faultproxy.NewOn(t, "[::1]:0", srv.Addr).Addr()
	src := amqp.New("amqp://guest:guest@"+at, amqp.Config{}).Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	open(t, src, transport.OpenOptions{}).close()
}

// F-K01: separate fields take raw text, an encoded URL works.
func TestAnyCharacterAsLogin(t *testing.T) {
	secret := `a b!"#$%&'()*+,-./:;<=>?@[\]^_` + "`{|}~äß日€"
	srv := amqptest.New(t, amqptest.Config{Users: []amqptest.User{{Name: secret, Password: secret}}, VHosts: []string{secret}})
	encoded := strings.ReplaceAll(url.QueryEscape(secret), "+", "%20")
	for what, b := range map[string]*amqp.Broker{
		"fields": amqp.New("amqp://"+srv.Addr+"/"+encoded, amqp.Config{User: secret, Password: transport.Static(secret)}),
		"URL":    amqp.New("amqp://"+encoded+":"+encoded+"@"+srv.Addr+"/"+encoded, amqp.Config{}),
	} {
		src := b.Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
		c := open(t, src, transport.OpenOptions{})
		for _, conn := range srv.Connections() {
			if conn.User != secret || conn.VHost != secret {
				t.Errorf("%s: logged in as %q in %q", what, conn.User, conn.VHost)
			}
		}
		c.close()
	}
}

// F-J03: the password changes while connected; after the next cut the new one is
// used without a restart. A token is renewed on the living connection.
func TestCredentialsAreAskedEachTime(t *testing.T) {
	srv := amqptest.New(t, amqptest.Config{Users: []amqptest.User{{Name: "app", Password: "one"}}})
	var password atomic.Pointer[string]
	set := func(s string) { password.Store(&s) }
	set("one")
	b := amqp.New("amqp://"+srv.Addr, amqp.Config{User: "app", RenewEvery: 20 * time.Millisecond,
		Password: transport.Func("a test", func(context.Context) (string, error) { return *password.Load(), nil })})
	src := b.Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	c := open(t, src, transport.OpenOptions{})
	srv.SetPassword("app", "two")
	set("two")
	eventually(t, "connection.update-secret with the new password", func() bool {
		cs := srv.Connections()
		return len(cs) == 1 && cs[0].Secret == "two"
	})
	if c.down() != nil {
		t.Errorf("down after the renewal: %v", c.down())
	}
	srv.CloseConnections(320, "bye", nil)
	eventually(t, "Observer.Down", func() bool { return c.down() != nil })
	wants(t, "Down", c.down(), longshore.CodeConnLost, "bye")
	c.close()
	reopen(t, src, transport.OpenOptions{})
	set("wrong")
	srv.Cut(nil)
	eventually(t, "the wrong one is refused", func() bool { _, err := tryOpen(t, src, transport.OpenOptions{}); return err != nil })
	_, err := tryOpen(t, src, transport.OpenOptions{})
	wants(t, "Open with a wrong password", err, longshore.CodeAuth)
	set("two")
	reopen(t, src, transport.OpenOptions{})
}

// F-J03 on a real broker.
func TestPasswordChangesOnRabbitMQ(t *testing.T) {
	brokertest.AMQP(t)
	node := brokertest.FaultNode(t)
	u, err := url.Parse(node.URL)
	if err != nil {
		t.Fatal("the node's URL cannot be read")
	}
	var password atomic.Pointer[string]
	set := func(s string) { password.Store(&s) }
	set("guest")
	b := amqp.New("amqp://"+u.Host+u.Path, amqp.Config{User: "guest",
		Password: transport.Func("a test", func(context.Context) (string, error) { return *password.Load(), nil })})
	src := b.Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	c := open(t, src, transport.OpenOptions{})
	node.ChangePassword("changed")
	node.CloseAllConnections()
	eventually(t, "Observer.Down", func() bool { return c.down() != nil })
	wants(t, "Down", c.down(), longshore.CodeConnLost, "320")
	c.close()
	_, err = tryOpen(t, src, transport.OpenOptions{})
	wants(t, "Open with the old password", err, longshore.CodeAuth)
	set("changed")
	reopen(t, src, transport.OpenOptions{})
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{}
	a.key, a.cert, _ = makeCert(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true})
	return a
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// issue makes a certificate for names and addresses.
func (a *authority) issue(t *testing.T, expires time.Time, names ...string) tls.Certificate {
	tpl := &x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, NotAfter: expires, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			tpl.IPAddresses = append(tpl.IPAddresses, ip)
		} else {
			tpl.DNSNames = append(tpl.DNSNames, n)
		}
	}
	key, _, der := makeCert(t, a, tpl)
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

// F-J02: who the peer is, is checked, for the node that is dialled.
func TestPeersAreVerified(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	soon := time.Now().Add(time.Hour)
	for what, c := range map[string]struct {
		cert   tls.Certificate
		host   string
		target error
		text   string
	}{
		"right by name":      {ours.issue(t, soon, "localhost"), "localhost", nil, ""},
		"right by address":   {ours.issue(t, soon, "127.0.0.1"), "127.0.0.1", nil, ""},
		"other name":         {ours.issue(t, soon, "elsewhere"), "localhost", longshore.CodeTLS, "another name"},
		"name, not address":  {ours.issue(t, soon, "localhost"), "127.0.0.1", longshore.CodeTLS, "another name"},
		"expired":            {ours.issue(t, time.Now().Add(-time.Minute), "localhost"), "localhost", longshore.CodeTLS, "expired"},
		"from somebody else": {others.issue(t, soon, "localhost"), "localhost", longshore.CodeTLS, "unknown authority"},
		"signed by itself":   {selfSigned(t, "localhost"), "localhost", longshore.CodeTLS, "self-signed"},
	} {
		srv := amqptest.New(t, amqptest.Config{TLS: &tls.Config{Certificates: []tls.Certificate{c.cert}}})
		_, port, _ := net.SplitHostPort(srv.Addr)
		b := amqp.New("amqps://guest:guest@"+net.JoinHostPort(c.host, port), amqp.Config{TLS: &tls.Config{RootCAs: ours.pool()}})
		_, err := tryOpen(t, b.Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}), transport.OpenOptions{})
		if c.target == nil {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		wants(t, what, err, c.target, c.text)
	}
}

func selfSigned(t *testing.T, name string) tls.Certificate {
	key, _, der := makeCert(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// F-J02: right for host A while we failed over to B.
func TestEachNodeIsVerifiedByItsOwnName(t *testing.T) {
	ours := newAuthority(t)
	cert := ours.issue(t, time.Now().Add(time.Hour), "localhost")
	srv := amqptest.New(t, amqptest.Config{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
	_, port, _ := net.SplitHostPort(srv.Addr)
	b := amqp.New("amqps://guest:guest@localhost:"+port, amqp.Config{Addresses: []string{"127.0.0.1:" + port}, TLS: &tls.Config{RootCAs: ours.pool()}})
	src := b.Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	good, bad := 0, 0
	for range 4 {
		if c, err := tryOpen(t, src, transport.OpenOptions{}); err == nil {
			good++
			c.close()
		} else {
			bad++
			wants(t, "the other node", err, longshore.CodeTLS, "127.0.0.1:"+port)
		}
	}
	if good != 2 || bad != 2 {
		t.Errorf("%d connects by the right name and %d refused, want 2 and 2: the nodes take turns", good, bad)
	}
}

// Insecure mode is possible, and loud.
func TestInsecureIsLoud(t *testing.T) {
	srv := amqptest.New(t, amqptest.Config{TLS: &tls.Config{Certificates: []tls.Certificate{selfSigned(t, "x")}}})
	b := amqp.New("amqps://guest:guest@"+srv.Addr, amqp.Config{TLS: &tls.Config{InsecureSkipVerify: true}}) //nolint:gosec // what is tested
	c := open(t, b.Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}), transport.OpenOptions{})
	eventually(t, "a notice", func() bool { return c.heard(transport.EventNotice) })
}

// SASL EXTERNAL: the client certificate is the login.
func TestLoginByCertificate(t *testing.T) {
	ours := newAuthority(t)
	soon := time.Now().Add(time.Hour)
	srv := amqptest.New(t, amqptest.Config{Users: []amqptest.User{{Name: "app"}, {Name: "reader", Configure: "^$"}}, TLS: &tls.Config{ClientCAs: ours.pool(),
		ClientAuth: tls.VerifyClientCertIfGiven, Certificates: []tls.Certificate{ours.issue(t, soon, "127.0.0.1")}}})
	for user, want := range map[string]error{"app": nil, "stranger": longshore.CodeAuth, "reader": longshore.CodeForbidden} {
		b := amqp.New("amqps://"+srv.Addr, amqp.Config{External: true, TLS: &tls.Config{RootCAs: ours.pool(), Certificates: []tls.Certificate{ours.issue(t, soon, user)}}})
		_, err := tryOpen(t, b.Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}), transport.OpenOptions{})
		if want != nil {
			wants(t, user, err, want, "certificate")
			for _, f := range longshore.FieldsOf(err) { // who it is only the broker knows
				if f.Name == "user" || strings.Contains(err.Error(), `""`) {
					t.Errorf("%s: %v, %v", user, err, f)
				}
			}
		} else if err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// What of the client's configuration is ours cannot be changed behind our back.
func TestClientHook(t *testing.T) {
	srv := amqptest.New(t)
	src := func(hook func(*amqp091.Config)) transport.Source {
		return amqp.New(srv.URL, amqp.Config{ConnectionName: "shop", Client: hook}).Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	}
	open(t, src(func(c *amqp091.Config) { c.Properties["team"] = "orders" }), transport.OpenOptions{})
	if c := srv.Connections()[0]; c.ClientName != "shop (consume)" || !strings.Contains(fmt.Sprint(c.Properties), "orders") {
		t.Errorf("connected as %q with %v", c.ClientName, c.Properties)
	}
	_, err := tryOpen(t, src(func(c *amqp091.Config) { c.Recovery = &amqp091.Recovery{} }), transport.OpenOptions{})
	wants(t, "automatic recovery", err, longshore.CodeConfig, "Recovery")
}
