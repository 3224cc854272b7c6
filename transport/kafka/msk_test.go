package kafka_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/aws"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A login by AWS MSK IAM: the mechanism is named to the broker, the keys are asked for,
// and what is sent is signed for the host and its region, without the secret.
func TestLoginByMSKIAM(t *testing.T) {
	t.Parallel()
	f := fake(t)
	var mechanism atomic.Pointer[string]
	sent := make(chan []byte, 1)
	f.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		f.KeepControl()
		r := req.(*kmsg.SASLHandshakeRequest) //nolint:errcheck // of this key
		mechanism.Store(&r.Mechanism)
		return r.ResponseKind(), nil, true
	})
	f.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		f.KeepControl()
		r := req.(*kmsg.SASLAuthenticateRequest) //nolint:errcheck // of this key
		select {
		case sent <- bytes.Clone(r.SASLAuthBytes):
		default:
		}
		resp := r.ResponseKind().(*kmsg.SASLAuthenticateResponse) //nolint:errcheck // of this request
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
	var asked atomic.Int64
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, f.ListenAddrs()[0])
	}
	b := kafka.New([]string{"b-1.orders.x1.c2.kafka.eu-west-1.amazonaws.com:9098"}, kafka.Config{Options: []kgo.Opt{kgo.Dialer(dial)},
		SASL: kafka.SASL{Native: aws.ManagedStreamingIAM(func(context.Context) (aws.Auth, error) {
			asked.Add(1)
			return aws.Auth{AccessKey: "AKIDEXAMPLE", SecretKey: "canary-secret", SessionToken: "token"}, nil
		})}})
	_, err := b.Group("billing", []string{"orders"}, kafka.GroupConfig{}).Open(t.Context(), transport.OpenOptions{})
	if !errors.Is(err, longshore.CodeAuth) {
		t.Errorf("Open: %v, want code %q", err, longshore.CodeAuth)
	}
	if m := mechanism.Load(); m == nil || *m != "AWS_MSK_IAM" {
		t.Fatalf("the mechanism named is %v", m)
	}
	if asked.Load() == 0 {
		t.Error("nobody asked for the keys")
	}
	raw := <-sent
	var payload map[string]string
	if err := json.Unmarshal(raw, &payload); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	if payload["host"] != "b-1.orders.x1.c2.kafka.eu-west-1.amazonaws.com" || payload["action"] != "kafka-cluster:Connect" || payload["x-amz-security-token"] != "token" ||
		payload["x-amz-signature"] == "" || !bytes.Contains(raw, []byte("/eu-west-1/kafka-cluster/aws4_request")) {
		t.Errorf("sent %s", raw)
	}
	if bytes.Contains(raw, []byte("canary")) {
		t.Error("the secret itself was sent")
	}
}
