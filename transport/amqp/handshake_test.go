package amqp_test

import (
	"crypto/tls"
	"slices"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// F-B01: the link ends after so many bytes of an opening, of one side or the other,
// within each frame of the handshake and within TLS. The attempt ends at once and
// says so with its type; what comes after the last of them is complete.
func TestLinkCutWithinTheHandshake(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	cert := ours.issue(t, time.Now().Add(time.Hour), "127.0.0.1")
	for scheme, server := range map[string]amqptest.Config{"amqp": {}, "amqps": {TLS: &tls.Config{Certificates: []tls.Certificate{cert}}}} {
		s := embeddedSite(t, server)
		cfg := amqp.Config{}
		if server.TLS != nil {
			cfg.TLS = &tls.Config{RootCAs: ours.pool()}
		}
		src := amqp.New(scheme+"://guest:guest@"+s.proxy.Addr(), cfg).Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
		for _, cut := range []faultproxy.ByteCut{{FromServer: true}, {FromServer: true, Reset: true}, {}, {Reset: true}} {
			if n := cutEverywhere(t, s.proxy, src, cut); n < 10 {
				t.Errorf("%s: an opening was over after %d cuts: %+v", scheme, n, cut)
			}
		}
		open(t, src, transport.OpenOptions{})
		eventually(t, "no attempt is left behind", func() bool { return len(s.embedded.Connections()) == 1 })
	}
}

// cutEverywhere moves a cut on until an opening is over before it.
func cutEverywhere(t *testing.T, proxy *faultproxy.Proxy, src transport.Source, cut faultproxy.ByteCut) (cuts int) {
	t.Helper()
	const step, most = 53, 200
	// A broker may refuse a login by hanging up without a word.
	codes := []longshore.Code{longshore.CodeUnreachable, longshore.CodeConnLost, longshore.CodeAuth}
	defer proxy.CutAfter(faultproxy.ByteCut{N: -1})
	for n := range most {
		cut.N = n * step
		proxy.CutAfter(cut)
		began := time.Now()
		c, err := tryOpen(t, src, transport.OpenOptions{})
		if err == nil {
			_ = c.Close(t.Context()) // the cut may come now
			return n
		}
		if took := time.Since(began); took > patience/2 {
			t.Errorf("%+v: it was told after %s", cut, took)
		}
		if code := longshore.CodeOf(err); !slices.Contains(codes, code) {
			t.Errorf("%+v: %q: %v", cut, code, err)
		}
	}
	t.Errorf("%+v: no opening got through", cut)
	return most
}

// F-B01: a node that hangs up once in the middle of a login is asked again: refused logins
// end a start for good, links that were cut do not.
func TestLinkCutOnceIsNoRefusedLogin(t *testing.T) {
	t.Parallel()
	const step, most = 53, 200
	s := embeddedSite(t, amqptest.Config{})
	src := amqp.New("amqp://guest:guest@"+s.proxy.Addr(), amqp.Config{}).Queue("q", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	again := 0
	for n := range most {
		before := s.proxy.ByteCuts()
		s.proxy.CutAfter(faultproxy.ByteCut{N: n * step, FromServer: true, Connections: 1})
		c, err := tryOpen(t, src, transport.OpenOptions{})
		cut := s.proxy.ByteCuts() > before
		if longshore.CodeOf(err) == longshore.CodeAuth {
			t.Errorf("cut after %d bytes: %v", n*step, err)
		}
		if err != nil {
			continue
		}
		_ = c.Close(t.Context()) // the cut may come now
		if !cut {
			break
		}
		again++
	}
	if again == 0 {
		t.Error("no cut fell into a login")
	}
}
