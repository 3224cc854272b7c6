package config

import (
	"testing"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// F-N14: what a container's dead letters are looked for at is on the host of its source.
func TestDeadLettersAreLookedForBesideTheSource(t *testing.T) {
	for _, tc := range []struct{ source, to, want string }{
		{"sqs://orders?region=eu-west-1", "dead", "sqs://dead?region=eu-west-1"},
		{"sqs://http%3A%2F%2Flocalhost%3A9324%2F0%2Forders?region=eu-west-1", "dead", "sqs://http:%2F%2Flocalhost:9324%2F0%2Fdead?region=eu-west-1"},
		{"sqs://arn:aws:sqs:eu-west-1:1:orders", "dead", "sqs://arn:aws:sqs:eu-west-1:1:dead"},
		{"amqp://u@h:1/v?queue=orders", "dead", "amqp://u@h:1/v?queue=dead"},
		{"kafka://u@h:1/orders?group=g", "dead", "kafka://u@h:1/dead"},
	} {
		if got, ok := beside(tc.source, tc.to); !ok || got != tc.want {
			t.Errorf("%s beside %s is %s, want %s", tc.to, tc.source, got, tc.want)
		}
	}
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ENDPOINT_URL", "")
	c := load(t, Options{}, `
brokers: {aws: {url: "sqs://"}}
containers:
  orders:
    source: {broker: aws, queue: "http://localhost:9324/0/orders"}
    dead_letter: {to: dead}
`)
	place, err := c.DeadLetters("orders", urls.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := place.Source.(transport.Describer).Describe(); d.Address != "localhost:9324" || d.Name != "dead" { //nolint:errcheck // it is one
		t.Errorf("%+v", d)
	}
}
