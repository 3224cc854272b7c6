package kafka_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// loggedIn is a topic of its own, and the broker as somebody sees it who logs in.
func loggedIn(t *testing.T, n *brokertest.KafkaNode, s kafka.SASL) (*cluster, *kafka.Broker) {
	t.Helper()
	return realCluster(t, n.Addrs, 2), kafka.New([]string{n.Login}, kafka.Config{SASL: s, Options: []kgo.Opt{kgo.HeartbeatInterval(300 * time.Millisecond)}})
}

func plain(user, password string) kafka.SASL {
	return kafka.SASL{User: user, Password: transport.Static(password)}
}

// token is what a broker takes that verifies no signatures.
func token(user string, lasts time.Duration) string {
	b := base64.RawURLEncoding
	now := time.Now()
	return b.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		b.EncodeToString(fmt.Appendf(nil, `{"sub":%q,"iat":%d,"exp":%d}`, user, now.Unix(), now.Add(lasts).Unix())) + "."
}

// F-J03: a token lives 5 s and has to be shown again after 4: it is asked for each
// time, and records flow all the while.
func renewedToken(t *testing.T, n *brokertest.KafkaNode, p kafka.Protocol) {
	var asked atomic.Int32
	c, b := loggedIn(t, n, kafka.SASL{Mechanism: kafka.OAuthBearer, Password: transport.Func("a test", func(context.Context) (string, error) {
		asked.Add(1)
		return token("app", 5*time.Second), nil
	})})
	m := open(t, b.Group(c.topic, []string{c.topic}, kafka.GroupConfig{Protocol: p}))
	pub := publisher(t, b, kafka.PublisherConfig{})
	atOnce := int32(0)
	for i, began := 0, time.Now(); time.Since(began) < 10*time.Second; i++ {
		if err := pub.Publish(t.Context(), c.topic, &longshore.Message{Body: fmt.Append(nil, i)}); err != nil {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
		ack(t, m.take(1)...)
		if atOnce == 0 {
			atOnce = asked.Load()
		}
		wait(100 * time.Millisecond)
	}
	m.flush()
	if lost, failed, downs := m.counts(); lost+failed+downs > 0 {
		t.Errorf("%d lost, %d settlements failed, down %d times", lost, failed, downs)
	}
	if n := asked.Load(); n < atOnce+4 { // fetching, coordinator and producer, each twice
		t.Errorf("asked for a token %d times to begin with and %d times in all", atOnce, n)
	}
}

func wrongLogin(t *testing.T, n *brokertest.KafkaNode, p kafka.Protocol) {
	for what, s := range map[string]kafka.SASL{
		"wrong password": plain("app", "guest-secret"), "unknown user": plain("nobody", "x"), "none": {},
		"a mechanism that is off": {Mechanism: kafka.ScramSHA512, User: "app", Password: transport.Static("app-secret")},
		"an expired token":        {Mechanism: kafka.OAuthBearer, Password: transport.Static(token("app", -time.Minute))},
	} {
		c, b := loggedIn(t, n, s)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := b.Group(c.topic, []string{c.topic}, kafka.GroupConfig{Protocol: p}).Open(ctx, transport.OpenOptions{})
		cancel()
		if !errors.Is(err, longshore.CodeAuth) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// grant lets guest do all with the topic, or with the group.
func grant(t *testing.T, n *brokertest.KafkaNode, topic, group string) (revoke func()) {
	t.Helper()
	acl := kadm.NewACLs().Allow("User:guest").AllowHosts("*").Operations(kadm.OpAll).ResourcePatternType(kadm.ACLPatternLiteral)
	if topic != "" {
		acl = acl.Topics(topic)
	}
	if group != "" {
		acl = acl.Groups(group)
	}
	adm := admin(t, n.Addrs)
	if _, err := adm.CreateACLs(t.Context(), acl); err != nil {
		t.Fatal(err)
	}
	revoke = func() {
		if _, err := adm.DeleteACLs(context.Background(), acl); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(revoke)
	return revoke
}

// Who may not use the topic or the group is refused at once, with its code; with the
// permission the same source works.
func noPermission(t *testing.T, n *brokertest.KafkaNode, p kafka.Protocol) {
	c, b := loggedIn(t, n, plain("guest", "guest-secret"))
	src := b.Group(c.topic, []string{c.topic}, kafka.GroupConfig{Protocol: p})
	refused := func(why string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := src.Open(ctx, transport.OpenOptions{}); !errors.Is(err, longshore.CodeForbidden) {
			t.Errorf("%s: %v", why, err)
		}
	}
	refused("neither topic nor group")
	pub := publisher(t, b, kafka.PublisherConfig{})
	if err := pub.Publish(t.Context(), c.topic, messages("a")...); !errors.Is(err, longshore.CodeForbidden) {
		t.Errorf("Publish: %v", err)
	}
	grant(t, n, c.topic, "")
	eventually(t, "the topic is permitted", func() bool { return pub.Publish(t.Context(), c.topic, messages("a")...) == nil })
	refused("no group")
	grant(t, n, "", c.topic)
	eventually(t, "the group is permitted", func() bool {
		m, err := src.Open(t.Context(), transport.OpenOptions{})
		if err != nil {
			return false
		}
		_ = m.Close(t.Context())
		return true
	})
	ack(t, open(t, src).take(1)...)
}

// A group that may no longer be used ends the consumer with the reason; its neighbour
// goes on.
func permissionTakenAway(t *testing.T, n *brokertest.KafkaNode, p kafka.Protocol) {
	c, b := loggedIn(t, n, plain("guest", "guest-secret"))
	grant(t, n, c.topic, "")
	revoke := grant(t, n, "", c.topic)
	src := b.Group(c.topic, []string{c.topic}, kafka.GroupConfig{Protocol: p})
	eventually(t, "it is permitted", func() bool { return src.Probe(t.Context()) == nil })
	m := open(t, src)
	other := realCluster(t, n.Addrs, 1)
	neighbour := open(t, other.group(kafka.GroupConfig{Protocol: p}))
	c.produce(0, 1, 1, 0)
	ack(t, m.take(1)...)
	revoke()
	if _, err := m.upTo(1, patience); !errors.Is(err, longshore.CodeForbidden) {
		t.Errorf("Receive: %v", err)
	}
	eventually(t, "it is down, once", func() bool { _, _, downs := m.counts(); return downs == 1 })
	other.produce(0, 1, 1, 0)
	ack(t, neighbour.take(1)...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = m.Close(ctx) // it may not commit
}
