package amqptest

import (
	"context"
	"net"
	"reflect"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

func TestCutBringsDeliveriesBackAtOnce(t *testing.T) {
	s := New(t)
	conn := dial(t, s.URL)
	closed := conn.NotifyClose(make(chan *amqp091.Error, 1))
	ch := open(t, conn)
	declare(t, ch, "q", nil)
	d := consume(t, ch, "q")
	publish(t, ch, "", "q", text("m"))
	next(t, d)
	if n := s.Cut(nil); n != 1 {
		t.Fatalf("cut %d connections, want 1", n)
	}
	if ready(s, "q") != 1 || unacked(s, "q") != 0 {
		t.Fatalf("ready %d unacked %d after the cut", ready(s, "q"), unacked(s, "q"))
	}
	_ = next(t, closed)
	again := next(t, consume(t, open(t, dial(t, s.URL)), "q"))
	if !again.Redelivered {
		t.Error("the message is not marked as redelivered")
	}
}

func TestCloseWithACode(t *testing.T) {
	s := New(t)
	conn := dial(t, s.URL)
	ch := open(t, conn)
	chClosed := ch.NotifyClose(make(chan *amqp091.Error, 1))
	connClosed := conn.NotifyClose(make(chan *amqp091.Error, 1))
	if n := s.CloseChannels(406, "because", nil); n != 1 {
		t.Fatalf("closed %d channels, want 1", n)
	}
	if e := next(t, chClosed); e.Code != 406 || e.Reason != "PRECONDITION_FAILED - because" || !e.Server {
		t.Errorf("channel closed with %v", e)
	}
	match := func(c ConnInfo) bool { return c.User == "guest" }
	if n := s.CloseConnections(320, "bye", match); n != 1 {
		t.Fatalf("closed %d connections, want 1", n)
	}
	if e := next(t, connClosed); e.Code != 320 || e.Reason != "CONNECTION_FORCED - bye" {
		t.Errorf("connection closed with %v", e)
	}
}

func TestRefuseAndComeBackOnTheSamePort(t *testing.T) {
	s := New(t)
	old := dial(t, s.URL)
	s.Refuse()
	if nc, err := net.Dial("tcp", s.Addr); err == nil {
		_ = nc.Close()
		t.Fatal("the port is open while refusing")
	}
	open(t, old) // lives on
	if err := s.Accept(); err != nil {
		t.Fatal(err)
	}
	open(t, dial(t, s.URL))
}

func TestCutAtTheNthMethodAfterConnecting(t *testing.T) {
	s := New(t)
	for n := 1; n <= 4; n++ {
		s.CutAt(n)
		conn := dial(t, s.URL)
		got := 0
		ch, err := conn.Channel()
		for ; err == nil && got < 10; got++ {
			_, err = ch.QueueDeclare("q", true, false, false, false, nil)
		}
		if err == nil || got != n-1 {
			t.Errorf("CutAt(%d): %d methods were answered, %v", n, got, err)
		}
	}
	s.CutAt(0)
	declare(t, open(t, dial(t, s.URL)), "q", nil)
}

func TestDelayHoldsAnswersBack(t *testing.T) {
	s := New(t)
	ch := open(t, dial(t, s.URL))
	const delay = 30 * time.Millisecond
	s.Delay(delay)
	start := time.Now()
	for range 3 {
		declare(t, ch, "q", nil)
	}
	if took := time.Since(start); took < 3*delay {
		t.Errorf("three calls took %v with a delay of %v", took, delay)
	}
	s.Delay(0)
	declare(t, ch, "q", nil)
}

func TestBlockStopsWhoPublishesAndNobodyElse(t *testing.T) {
	s := New(t)
	pub, sub := dial(t, s.URL), dial(t, s.URL)
	blocked := pub.NotifyBlocked(make(chan amqp091.Blocking, 2))
	pch, sch := open(t, pub), open(t, sub)
	if err := pch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	confirms := pch.NotifyPublish(make(chan amqp091.Confirmation, 1))
	declare(t, pch, "q", nil)
	d := consume(t, sch, "q")
	publish(t, pch, "", "q", text("before"))
	_ = next(t, d).Ack(false)
	next(t, confirms)
	s.Block("low on memory")
	none(t, blocked, "told before it published again")
	publish(t, pch, "", "q", text("m"))
	if b := next(t, blocked); !b.Active || b.Reason != "low on memory" {
		t.Errorf("blocked with %+v", b)
	}
	none(t, confirms, "confirmed while blocked")
	declare(t, sch, "other", nil) // does not publish: lives on
	s.Unblock()
	if b := next(t, blocked); b.Active {
		t.Error("still blocked")
	}
	if !next(t, confirms).Ack {
		t.Error("not confirmed after the alarm")
	}
	_ = next(t, d).Ack(false)
	declare(t, pch, "q", nil)
}

func TestCloseWhileBlockedAndStalled(t *testing.T) {
	s := New(t)
	conn := dial(t, s.URL)
	ch := open(t, conn)
	s.Block("disk")
	publish(t, ch, "", "q", text("m"))
	until(t, "blocked", func() bool { return len(s.Connections()) == 1 && s.Connections()[0].Blocked })
	other := dial(t, s.URL)
	s.Stall(nil)
	_ = other
	if err := s.Close(); err != nil { // goleak sees whether everything ended
		t.Fatal(err)
	}
}

func TestStallIsAHalfOpenConnection(t *testing.T) {
	s := New(t)
	conn := dial(t, s.URL)
	ch := open(t, conn)
	closed := conn.NotifyClose(make(chan *amqp091.Error, 1))
	s.Stall(nil)
	answered := make(chan error, 1)
	go func() { answered <- ch.Qos(1, 0, false) }()
	none(t, answered, "answered while stalled")
	none(t, closed, "closed while stalled")
	s.Unstall()
	if err := next(t, answered); err != nil {
		t.Error(err)
	}
}

func TestLoseAndNackConfirms(t *testing.T) {
	s := New(t)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", nil)
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	put := func() *amqp091.DeferredConfirmation {
		dc, err := ch.PublishWithDeferredConfirmWithContext(context.Background(), "", "q", false, false, text("m"))
		if err != nil {
			t.Fatal(err)
		}
		return dc
	}
	s.LoseConfirms(1)
	lost, after := put(), put()
	if !after.Wait() {
		t.Error("the publish after the lost one was not confirmed")
	}
	none(t, lost.Done(), "the lost confirm came")
	s.NackConfirms(1)
	if put().Wait() {
		t.Error("acked, want a nack")
	}
	if got := ready(s, "q"); got != 3 {
		t.Errorf("%d messages in the queue, want 3: what is lost is the answer", got)
	}
}

func TestDeleteQueueUnderneath(t *testing.T) {
	s := New(t)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", nil)
	cancelled := ch.NotifyCancel(make(chan string, 1))
	d, err := ch.Consume("q", "tag", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, ch, "", "q", text("m"))
	m := next(t, d)
	if !s.DeleteQueue("/", "q") || s.DeleteQueue("/", "q") {
		t.Error("DeleteQueue does not tell whether there was one")
	}
	if tag := next(t, cancelled); tag != "tag" {
		t.Errorf("cancelled %q", tag)
	}
	if err := m.Ack(false); err != nil { // the tag is still known
		t.Error(err)
	}
	declare(t, ch, "q", nil)
}

func TestRestartKeepsWhatIsDurable(t *testing.T) {
	s := New(t)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "durable", nil)
	if _, err := ch.QueueDeclare("transient", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	publish(t, ch, "", "durable", amqp091.Publishing{DeliveryMode: 2, Body: []byte("kept")})
	publish(t, ch, "", "durable", amqp091.Publishing{DeliveryMode: 1, Body: []byte("lost")})
	until(t, "published", func() bool { return ready(s, "durable") == 2 })
	s.Restart()
	got := s.Messages("/", "durable")
	if len(got) != 1 || string(got[0].Body) != "kept" {
		t.Errorf("messages after the restart: %v", got)
	}
	if _, ok := s.Queue("/", "transient"); ok {
		t.Error("the transient queue survived")
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if q := s.Queues("/"); len(q) != 0 {
		t.Errorf("queues after Reset: %v", q)
	}
	open(t, dial(t, s.URL))
}

func TestLogOfMethods(t *testing.T) {
	s := New(t)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", amqp091.Table{"x-max-length": int32(5)})
	d := consume(t, ch, "q")
	publish(t, ch, "", "q", text("m"))
	_ = next(t, d).Nack(true, false)
	until(t, "settled", func() bool { return unacked(s, "q") == 0 })
	byName := map[string]MethodEvent{}
	for _, m := range s.Methods() {
		byName[m.Name] = m
	}
	if m := byName["queue.declare"]; m.Arg("queue") != "q" || m.Arg("durable") != true || m.Arg("exclusive") != false || !reflect.DeepEqual(m.Arg("arguments"), Table{{"x-max-length", int32(5)}}) {
		t.Errorf("queue.declare logged as %v", m)
	}
	if m := byName["basic.nack"]; m.Arg("delivery-tag") != uint64(1) || m.Arg("multiple") != true || m.Arg("requeue") != false || m.Arg("nothing") != nil {
		t.Errorf("basic.nack logged as %v", m)
	}
	if m := byName["connection.start-ok"]; m.Arg("response") != nil {
		t.Error("credentials are in the log")
	}
	s.ResetMethods()
	if len(s.Methods()) != 0 {
		t.Error("the log is not empty after ResetMethods")
	}
}
