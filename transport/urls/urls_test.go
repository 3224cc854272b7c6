package urls_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/urls"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSourceNamesWhatTheURLNames(t *testing.T) {
	for raw, want := range map[string]transport.Description{
		"mem://orders":                       {Transport: "memory", Kind: "queue", Name: "orders", Address: "memory"},
		"MEM://a%2Fb?prefetch=5":             {Transport: "memory", Kind: "queue", Name: "a/b", Address: "memory"},
		"amqp://u@h/shop?queue=orders":       {Transport: "rabbitmq", Kind: "queue", Name: "orders", Address: "h:5672"},
		"amqps://u:p@h:1/v?queue=a%20b":      {Transport: "rabbitmq", Kind: "queue", Name: "a b", Address: "h:1"},
		"amqp://h?queue=q&heartbeat=5":       {Transport: "rabbitmq", Kind: "queue", Name: "q", Address: "h:5672"},
		"kafka://h1,h2:1/orders?group=g":     {Transport: "kafka", Kind: "group", Name: "orders", Address: "h1:9092,h2:1"},
		"kafkas://u:p%40@h/a,b?group=g":      {Transport: "kafka", Kind: "group", Name: "a,b", Address: "h:9092"},
		"sqs://orders.fifo?region=eu-west-1": {Transport: "aws_sqs", Kind: "queue", Name: "orders.fifo", Address: "sqs.eu-west-1.amazonaws.com"},
		"sqs://orders?region=r&endpoint=http%3A%2F%2Fh:1&visibility=1m&envelope=sns&declare=true": {Transport: "aws_sqs", Kind: "queue", Name: "orders", Address: "h:1"},
		"sqs://arn:aws:sqs:eu-west-2:123456789012:orders":                                         {Transport: "aws_sqs", Kind: "queue", Name: "orders", Address: "sqs.eu-west-2.amazonaws.com"},
		"sqs://https://sqs.eu-west-3.amazonaws.com/123456789012/orders":                           {Transport: "aws_sqs", Kind: "queue", Name: "orders", Address: "sqs.eu-west-3.amazonaws.com"},
		"kafka://h/a,b?share=billing":                                                             {Transport: "kafka", Kind: "share group", Name: "a,b", Address: "h:9092"},
		"kafka://h/a?group=g&transactional=true":                                                  {Transport: "kafka", Kind: "group", Name: "a", Address: "h:9092"},
		"kafka://h/a?broadcast=true":                                                              {Transport: "kafka", Kind: "broadcast", Name: "a", Address: "h:9092"},
		"amqp://h?queue=q&consumers=per_worker&prefetch=1":                                        {Transport: "rabbitmq", Kind: "queue", Name: "q", Address: "h:5672"},
		"amqp://h?queue=q&declare=quorum":                                                         {Transport: "rabbitmq", Kind: "queue", Name: "q", Address: "h:5672"},
	} {
		src, err := urls.Source(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got := src.(transport.Describer).Describe() //nolint:errcheck // all of ours are
		got = transport.Description{Transport: got.Transport, Kind: got.Kind, Name: got.Name, Address: got.Address}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", raw, got, want)
		}
	}
}

// Bad URLs: typed, all problems, what is known, and never the secret in them.
func TestBadURLSaysWhatIsKnownAndNoSecret(t *testing.T) {
	const secret = "hunter2"
	for raw, want := range map[string]struct {
		code longshore.Code
		text []string
	}{
		"":                              {longshore.CodeBadAddress, []string{"mem://name", "amqp://"}},
		secret:                          {longshore.CodeBadAddress, []string{"mem://name"}},
		"redis://:" + secret + "@h":     {longshore.CodeBadAddress, []string{"mem://name", "amqp://"}},
		"u:" + secret + "@amqp://h":     {longshore.CodeBadAddress, []string{"amqp://"}},
		"mem://":                        {longshore.CodeBadAddress, []string{"name a queue"}},
		"mem://%zz" + secret:            {longshore.CodeBadAddress, []string{"percent-encoded"}},
		"mem://q?" + "x=" + secret:      {longshore.CodeConfig, []string{`"x" is unknown`, "prefetch", "dead-letter"}},
		"mem://q?prefetch=" + secret:    {longshore.CodeConfig, []string{`"prefetch"`, "number"}},
		"mem://q?prefetch=1&prefetch=2": {longshore.CodeConfig, []string{"more than once"}},
		"mem://q?a=1&b=2":               {longshore.CodeConfig, []string{`"a"`, `"b"`}},
		"mem://q?a=%zz" + secret:        {longshore.CodeBadAddress, []string{"percent-encode"}},
		"amqp://u:" + secret + "@h/v":   {longshore.CodeConfig, []string{`"queue" is missing`}},
		"amqp://u:" + secret + "@h/v?queue=q&declare=" + secret: {longshore.CodeConfig, []string{"quorum or classic"}},
		"amqp://u:" + secret + "@h/v?queue=q&key=" + secret:     {longshore.CodeConfig, []string{"header:NAME or routing-key"}},
		"amqp://u:" + secret + "@h:99999/v?queue=q":             {longshore.CodeBadAddress, []string{"port"}},
		"amqp://u:" + secret + "@h/v?queue=q&colour=" + secret:  {longshore.CodeConfig, []string{`"colour"`, "heartbeat"}},
		"amqp://u:" + secret + "@h/v?que=q":                     {longshore.CodeConfig, []string{`"que" is unknown; did you mean "queue"?`, `"queue" is missing`}},
		"amqp://u:a?" + secret + "@h/v?queue=q":                 {longshore.CodeConfig, []string{"not shown", "percent-encode"}},
		"amqp://u@h/v?queue=q&Prefetch=5":                       {longshore.CodeConfig, []string{`did you mean "prefetch"?`}},
		"amqp://u@h/v?queue=q&heartbeet=5":                      {longshore.CodeConfig, []string{`did you mean "heartbeat"?`}},
		"kafka://h/t?grp=g":                                     {longshore.CodeConfig, []string{`"grp" is unknown; did you mean "group"?`}},
		"kafka://h/t?group=g&from=x":                            {longshore.CodeConfig, []string{`"from" is unknown; known parameters: group`}},
		"sqs://q?regoin=r":                                      {longshore.CodeConfig, []string{`did you mean "region"?`}},
		"mem://q?dead_letter=d":                                 {longshore.CodeConfig, []string{`did you mean "dead-letter"?`}},
		"amqp://u:" + secret + "@h/%zz?queue=q":                 {longshore.CodeBadAddress, nil},
		"kafka://u:" + secret + "@h/t":                          {longshore.CodeConfig, []string{`"group" is missing`, "broadcast=true"}},
		"kafka://u:" + secret + "@h:x/t?group=g":                {longshore.CodeBadAddress, []string{"port"}},
		"kafka://u:" + secret + "@h?group=g":                    {longshore.CodeConfig, []string{"no topic is named; write it after"}},
		"kafka://h/t?group=g&share=s":                           {longshore.CodeConfig, []string{`"share" does not go with a group or a broadcast`}},
		"kafka://h/t?share=s&broadcast=true":                    {longshore.CodeConfig, []string{`"share" does not go with a group or a broadcast`}},
		"kafka://h/t?broadcast=true&transactional=a":            {longshore.CodeConfig, []string{`"transactional" does not go with a share group or a broadcast`}},
		"sqs://?region=r":                                       {longshore.CodeBadAddress, []string{"name a queue"}},
		"sqs://a b?region=r":                                    {longshore.CodeBadAddress, []string{"letters"}},
		"sqs://q?region=r&visibility=" + secret:                 {longshore.CodeConfig, []string{"30s"}},
		"sqs://q?region=r&envelope=" + secret:                   {longshore.CodeConfig, []string{"sns or eventbridge"}},
		"sqs://q?region=r&endpoint=http://u:" + secret + "@h":   {longshore.CodeBadAddress, []string{"credentials"}},
		"kafka://h/t?group=g&sasl=" + secret:                    {longshore.CodeConfig, []string{"scram-sha-256"}},
	} {
		_, err := urls.Source(raw)
		if !errors.Is(err, want.code) {
			t.Errorf("%q: got %v, want the code %s", raw, err, want.code)
			continue
		}
		for _, text := range want.text {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q: %q is not in: %v", raw, text, err)
			}
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error shows the secret: %v", raw, err)
		}
	}
}

// The word for a mechanism may be as longshore.yaml or as Kafka has it.
func TestMechanismsInTheirOtherSpellings(t *testing.T) {
	for _, word := range []string{"scram-sha-256", "scram_sha_256", "SCRAM-SHA-256"} {
		if _, err := urls.Source("kafka://u:p@h/t?group=g&sasl=" + word); err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// The list of parameters is that of the transport too.
func TestEveryParameterOfAnAMQPAddressIsTaken(t *testing.T) {
	for p, v := range map[string]string{"auth_mechanism": "plain", "connection_timeout": "5000", "heartbeat": "20", "server_name_indication": "rabbit",
		"cacertfile": "x", "certfile": "x", "keyfile": "x"} {
		_, err := urls.Source("amqps://u:p@h/v?queue=q&" + p + "=" + v)
		if err != nil && strings.Contains(err.Error(), "is unknown") {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// Who only publishes needs no group.
func TestKafkaOutletWithoutAGroup(t *testing.T) {
	src, err := urls.Options{NoConsumer: true}.Source("kafka://h/orders")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := src.(transport.Outlet); !ok {
		t.Error("no outlet")
	}
}

func TestMemorySourcesShareTheBrokerOfTheOptions(t *testing.T) {
	b := memory.New(memory.Config{})
	src, err := urls.Options{Memory: b}.Source("mem://orders")
	if err != nil {
		t.Fatal(err)
	}
	pub, err := b.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := pub.Publish(t.Context(), "orders", &longshore.Message{Body: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	one(t, src)
}

// key=header:NAME and key=routing-key give messages of other producers a key.
func TestAMQPKeyFromHeaderOrRoutingKey(t *testing.T) {
	srv := amqptest.New(t)
	base, _, _ := strings.Cut(srv.URL, "?")
	for key, want := range map[string]string{"": "", "&key=header:customer": "c7", "&key=routing-key": "orders"} {
		src, err := urls.Source(base + "?queue=orders&declare=classic" + key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := src.Open(t.Context(), transport.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pub, dest, err := src.(transport.Outlet).Publisher(t.Context()) //nolint:errcheck // it is one
		if err != nil {
			t.Fatal(err)
		}
		m := &longshore.Message{Body: []byte("a"), Headers: longshore.Headers{{Name: "customer", Value: "c7"}}}
		if err := errors.Join(pub.Publish(t.Context(), dest, m), pub.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		ds, err := c.Receive(t.Context(), 1)
		if err != nil || string(ds[0].Key) != want {
			t.Errorf("%q: key %q, %v; want %q", key, ds[0].Key, err, want)
		}
		if err := errors.Join(ds[0].Ack(t.Context()), c.Flush(t.Context()), c.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAMQPSourceConsumes(t *testing.T) {
	srv := amqptest.New(t)
	base, _, _ := strings.Cut(srv.URL, "?")
	src, err := urls.Source(base + "?queue=orders&declare=classic&prefetch=5")
	if err != nil {
		t.Fatal(err)
	}
	c, err := src.Open(t.Context(), transport.OpenOptions{}) // declares
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := src.(transport.Outlet) //nolint:errcheck // it is
	pub, dest, err := out.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pub.Publish(t.Context(), dest, &longshore.Message{Body: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	if err := pub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	one(t, src)
}

// one receives one message and acks it.
func one(t *testing.T, src transport.Source) {
	t.Helper()
	c, err := src.Open(t.Context(), transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := c.Receive(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := ds[0].Ack(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
