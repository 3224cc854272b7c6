package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/docs"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
)

// A login that is refused reads the same on every broker: what, to what, what to do, the facts
// apart, and never the password.
func TestALoginThatIsRefused(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAXXXX")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-pw")
	rabbit := amqptest.New(t)
	declareOn(t, rabbit, "orders", nil)
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "right"))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	aws := refusing(t, http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid.")
	for _, c := range []struct {
		target, text, help, field, value string
	}{
		{"amqp://app:wrong-pw@" + rabbit.Addr + "/?queue=orders", `login refused for user "app" (403 ACCESS_REFUSED)`, "check the user and the password from ", "user", "app"},
		{"kafka://app:wrong-pw@" + k.ListenAddrs()[0] + "/orders", `login refused for user "app": the broker hung up`, "check the user and the password from ", "user", "app"},
		{"sqs://orders?region=eu-west-1&endpoint=" + aws, "The security token included in the request is invalid (InvalidClientTokenId)", "check the clock, and the credentials", "region", "eu-west-1"},
	} {
		for _, verb := range []string{"peek", "publish", "doctor", "dlq list", "dlq purge --yes", "dlq replay --yes"} {
			got := world{in: "x"}.run(t, append(strings.Fields(verb), c.target, "--json", "--timeout", "20s")...)
			var p struct {
				Code, Message, Help string
				Fields              map[string]string
			}
			if err := json.Unmarshal([]byte(strings.SplitN(got.err, "\n", 2)[0]), &p); err != nil || got.code != 6 {
				t.Errorf("%s %.9s: %v, %+v", verb, c.target, err, got)
				continue
			}
			if p.Code != "auth" || !strings.Contains(p.Message, c.text) || !strings.HasPrefix(p.Help, c.help) || p.Fields[c.field] != c.value {
				t.Errorf("%s %.9s: %+v", verb, c.target, p)
			}
			if strings.Contains(got.err+got.out, "wrong-pw") {
				t.Errorf("%s %.9s shows the password: %+v", verb, c.target, got)
			}
			if _, ok := docs.ErrorPage(p.Code); !ok {
				t.Errorf("nothing explains %s", p.Code)
			}
		}
	}
}

// A container does not try a refused login again and again in silence: its start fails.
func TestAContainerWhoseLoginIsRefusedDoesNotStart(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "right"))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	aws := refusing(t, http.StatusForbidden, "AccessDenied", "User: arn:aws:iam::1:user/app is not authorized to perform: sqs:receivemessage")
	keys := sqs.Keys("AKIAXXXX", transport.Static("wrong-pw"), transport.Secret{})
	for code, src := range map[longshore.Code]transport.Source{
		longshore.CodeAuth:      kafka.New(k.ListenAddrs(), kafka.Config{SASL: kafka.SASL{User: "app", Password: transport.Static("wrong-pw")}}).Group("g", []string{"orders"}, kafka.GroupConfig{}),
		longshore.CodeForbidden: sqs.New(sqs.Config{Region: "eu-west-1", Endpoint: aws, Credentials: keys}).Queue("orders", sqs.QueueConfig{}),
	} {
		c, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }),
			container.Config{Logger: zap.NewNop(), DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err = c.Start(ctx)
		if ctx.Err() != nil || longshore.CodeOf(err) != code || len(longshore.FieldsOf(err)) == 0 || strings.Contains(err.Error(), "wrong-pw") {
			t.Errorf("%s: %v, fields %v", code, err, longshore.FieldsOf(err))
		}
		cancel()
	}
}

// refusing is an SQS that answers every call with an error, as AWS writes it.
func refusing(t *testing.T, status int, code, message string) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amzn-Query-Error", code+";Sender")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#%s","message":%q}`, code, message)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
