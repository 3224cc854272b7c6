package survey

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/memory"
)

// Each finding is found, names how many messages it is about, and is accepted by its code.
func TestFindings(t *testing.T) {
	for _, c := range []struct {
		code string
		bad  bool
		m    longshore.Message
		n    int
	}{
		{"NO-ID", true, longshore.Message{Key: []byte("a")}, 1},
		{"NO-ID", true, longshore.Message{ID: "always", Key: []byte("a")}, 2},
		{"NO-KEY", false, longshore.Message{ID: "x"}, 1},
		{"HOT-KEY", false, longshore.Message{Key: []byte("same")}, 60},
		{"TOO-LARGE", true, longshore.Message{ID: "x", Body: make([]byte, 101)}, 1},
		{"TTL", false, longshore.Message{ID: "x", Expiration: time.Hour}, 1},
		{"PRIORITY", false, longshore.Message{ID: "x", Priority: 5}, 1},
		{"REPLY-TO", true, longshore.Message{ID: "x", ReplyTo: "answers"}, 1},
		{"DELAYED", false, longshore.Message{ID: "x", Headers: longshore.Headers{{Name: "x-delay", Value: int64(500)}}}, 1},
	} {
		s := newSample(func(d *longshore.Delivery) string { return d.Received().ID }, 100)
		for range c.n {
			s.add(&longshore.Delivery{Message: c.m})
		}
		r := &Report{Findings: s.findings("rabbitmq", "kafka", true)}
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Code == c.code })
		if i < 0 {
			t.Errorf("%s is not found: %+v", c.code, r.Findings)
			continue
		}
		if f := r.Findings[i]; f.Error != c.bad || f.Text == "" || c.bad && f.Hint == "" {
			t.Errorf("%s: %+v", c.code, f)
		}
		if open := r.Open(nil); slices.Contains(open, c.code) != c.bad || slices.Contains(r.Open([]string{c.code}), c.code) {
			t.Errorf("%s: open %v", c.code, open)
		}
	}
	s := newSample(nil, 100)
	s.headersExchange, s.delayed = true, 3
	if f := s.findings("rabbitmq", "kafka", true); len(f) != 2 || f[0].Code != "HEADERS-EXCHANGE" || f[1].Code != "DELAYED" {
		t.Errorf("without a sample: %+v", f)
	}
}

// A survey takes nothing, and says what changes and which privileges are needed.
func TestSurveyTakesNothing(t *testing.T) {
	old, target := memory.New(memory.Config{Name: "old"}), memory.New(memory.Config{Name: "new"})
	pub, err := old.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if err := pub.Publish(t.Context(), "orders", &longshore.Message{ID: fmt.Sprint(i), Key: []byte{byte(i % 3)}, Body: make([]byte, i)}); err != nil {
			t.Fatal(err)
		}
	}
	in := Input{From: old.Queue("orders", memory.QueueConfig{}), To: target.Queue("orders", memory.QueueConfig{}), Sample: 20}
	for range 2 {
		r, err := Of(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if r.Sampled != 20 || r.Waiting.Ready != 30 || r.Keys != 3 || r.Largest != 19 || len(r.Privileges) != 2 {
			t.Errorf("%+v", r)
		}
	}
	if c := changes("rabbitmq", "aws_sqs"); len(c) != 4 || !strings.Contains(c[2].New, "12 h") {
		t.Errorf("%+v", c)
	}
}
