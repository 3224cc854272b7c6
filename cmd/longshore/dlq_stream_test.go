package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// slowLetters is a place of dead letters that shows some and then no more in time.
type slowLetters struct {
	transport.Source
	answers, there int
	read           *int
}

func (s slowLetters) Depth(context.Context) (transport.Depth, error) {
	return transport.Depth{Ready: s.there}, nil
}

func (s slowLetters) Browse(context.Context, string, int) ([]*longshore.Delivery, string, error) {
	return nil, "", fmt.Errorf("a Scanner is not browsed")
}

func (s slowLetters) Scan(ctx context.Context, n int, each func(*longshore.Delivery) bool) (bool, error) {
	for i := range n {
		if i == s.answers {
			<-ctx.Done()
			return false, ctx.Err()
		}
		*s.read++
		d := longshore.NewDelivery(context.Background(), nil, 0)
		d.Key, d.Headers = []byte("i11p\x00\x00\x00\x02"), longshore.Headers{{Name: longshore.HeaderID, Value: fmt.Sprint("m-", i)},
			{Name: "longshore-dead-reason", Value: "panic"}, {Name: "longshore-dead-at", Value: time.Now().Format(time.RFC3339Nano)}}
		if !each(d) {
			return false, nil
		}
	}
	return false, nil
}

func slow(answers, there int) (w world, read *int) {
	read = new(int)
	return world{source: func(string, urls.Options) (transport.Source, error) {
		return slowLetters{nil, answers, there, read}, nil
	}}, read
}

// F-N34: two dead letters of 15,000 are two reads.
func TestAListReadsNoMoreThanItShows(t *testing.T) {
	w, read := slow(10_000, 15_000)
	got := w.run(t, "dlq", "list", "x", "-n", "2")
	if got.code != 0 || *read != 2 || got.err != "2 of 15000 shown; raise -n for more\n" || strings.Count(got.out, "\n") != 3 {
		t.Errorf("%d were read: %+v", *read, got)
	}
	*read = 0
	if got := w.run(t, "dlq", "list", "x", "-n", "2", "--reason", "panic", "--json", "-q"); got.code != 0 || *read != 2 || strings.Count(got.out, "\n") != 2 {
		t.Errorf("%d were read: %+v", *read, got)
	}
}

// A list whose time is over prints what it has read, and says that there is more.
func TestAListPrintsWhatItHas(t *testing.T) {
	w, _ := slow(5, 15_000)
	for _, args := range [][]string{nil, {"--json"}} {
		got := w.run(t, append([]string{"dlq", "list", "x", "--timeout", "50ms"}, args...)...)
		if got.code == 0 || strings.Count(got.out, "m-") < 5 || !strings.Contains(got.err, "5 shown of the first 5; the rest was not read") {
			t.Errorf("%+v", got)
		}
	}
}

func TestABinaryKeyIsNamedAsItIsShown(t *testing.T) {
	w, _ := slow(10, 15_000)
	got := w.run(t, "dlq", "list", "x", "-n", "1")
	if !strings.Contains(got.out, "m-0  0x6931317000000002  panic") {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "dlq", "list", "x", "-n", "1", "--key", "0x6931317000000002"); !strings.Contains(got.out, "m-0") {
		t.Errorf("%+v", got)
	}
}
