package kafka_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// listening is an address at which answer is called with each connection, which stay open
// until the end of the test unless it closes them.
func listening(t *testing.T, answer func(net.Conn)) (addr string) {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			answer(conn)
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-done })
	return ln.Addr().String()
}

// alerting answers as a TLS listener of Kafka does to who speaks plain text.
func alerting(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 64))
	_, _ = conn.Write([]byte{21, 3, 3, 0, 2, 2, 80})
	_ = conn.Close()
}

// A port of another kind is told from a wrong password, and what to do about it too.
func TestPortsOfAnotherKind(t *testing.T) {
	t.Parallel()
	open := fake(t, kfake.SeedTopics(1, "orders"))
	open.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) { // as Kafka answers there
		open.KeepControl()
		res := kmsg.NewPtrSASLHandshakeResponse()
		res.SetVersion(req.GetVersion())
		res.ErrorCode = kerr.IllegalSaslState.Code
		return res, nil, true
	})
	locked := fake(t, kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "app-secret"))
	for name, x := range map[string]struct {
		addrs      []string
		cfg        kafka.Config
		code       longshore.Code
		text, hint string
	}{
		"a login where there is none":   {open.ListenAddrs(), kafka.Config{SASL: plain("app", "app-secret")}, longshore.CodeAuth, "takes no login on this port (ILLEGAL_SASL_STATE)", "leave SASL out"},
		"none where there is one":       {locked.ListenAddrs(), kafka.Config{}, longshore.CodeAuth, "a client that does not log in", "set SASL"},
		"plain text where there is TLS": {[]string{listening(t, alerting)}, kafka.Config{}, longshore.CodeTLS, "it answers as TLS does", "kafkas://"},
	} {
		err := tryOpen(t, kafka.New(x.addrs, x.cfg))
		var e *longshore.Error
		if !errors.As(err, &e) || e.Code != x.code || !strings.Contains(e.Error(), x.text) || !strings.Contains(e.Hint, x.hint) || !strings.Contains(e.Error(), x.addrs[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a single record was refused for says who asked, and where.
func TestRefusedRecordsHaveFields(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "app-secret"))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders", Err: kerr.TopicAuthorizationFailed, Count: -1})
	p := publisher(t, kafka.New(c.ListenAddrs(), kafka.Config{SASL: plain("app", "app-secret")}), kafka.PublisherConfig{})
	err := p.Publish(t.Context(), "orders", &longshore.Message{Body: []byte("a")}, &longshore.Message{Body: []byte("b")})
	var partial *transport.PartialError
	if !errors.As(err, &partial) || len(partial.Failed) != 2 {
		t.Fatal(err)
	}
	for i, err := range partial.Failed {
		facts := map[string]string{}
		for _, f := range longshore.FieldsOf(err) {
			facts[f.Name] = f.Value
		}
		if !errors.Is(err, longshore.CodeForbidden) || facts["user"] != "app" || facts["address"] != strings.Join(c.ListenAddrs(), ",") || !strings.Contains(err.Error(), `give user "app" the permission`) {
			t.Errorf("record %d: %v %v", i, err, facts)
		}
	}
}
