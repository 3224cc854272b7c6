package urls_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/urls"
)

// F-N22: a queue with a comma in its name is one queue.
func TestAQueueWithACommaIsOneOfSeveral(t *testing.T) {
	srv := amqptest.New(t)
	base, _, _ := strings.Cut(srv.URL, "?")
	both, err := urls.Source(base + "?queues=orders%2Ceu,a%2Bb&declare=classic")
	if err != nil {
		t.Fatal(err)
	}
	c, err := both.Open(t.Context(), transport.OpenOptions{}) // declares
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"orders%2Ceu", "a%2Bb"} {
		src, err := urls.Source(base + "?queue=" + name)
		if err != nil {
			t.Fatal(err)
		}
		pub, dest, err := src.(transport.Outlet).Publisher(t.Context()) //nolint:errcheck // it is one
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
}

// F-N22: a topic that cannot be read is refused, and not left out.
func TestNoTopicIsLeftOut(t *testing.T) {
	if _, err := urls.Source("kafka://h/a,b%zz?group=g"); !errors.Is(err, longshore.CodeBadAddress) {
		t.Errorf("got %v", err)
	}
}
