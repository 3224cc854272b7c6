package amqptest

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestStartsWithinTwoMilliseconds(t *testing.T) {
	best := time.Hour
	for range 20 {
		start := time.Now()
		s, err := Start(Config{})
		took := time.Since(start)
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, took)
		if err := errors.Join(s.Close(), s.Close()); err != nil { // idempotent
			t.Fatal(err)
		}
	}
	if best > 2*time.Millisecond {
		t.Errorf("the fastest of 20 starts took %v", best)
	}
}

func TestBadConfigurationNamesEveryProblem(t *testing.T) {
	_, err := Start(Config{FrameMax: 100, ChannelMax: -1, Flavor: 9, Users: []User{{Name: "u", Read: "("}}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"FrameMax 100", "ChannelMax -1", "Flavor 9", `user "u"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	s := New(t)
	if _, err := Start(Config{Addr: s.Addr}); err == nil {
		t.Error("two servers on one port")
	}
}

func TestCloseWithClientsAtWork(t *testing.T) {
	s, err := Start(Config{})
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, s.URL)
	ch := open(t, conn)
	declare(t, ch, "q", nil)
	consume(t, ch, "q")
	publish(t, ch, "", "q", text("m"))
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("Close took %v", took)
	}
	s.Cut(nil) // controls of a closed server do nothing
	s.Refuse()
	if err := s.Accept(); err != nil {
		t.Error(err)
	}
}
