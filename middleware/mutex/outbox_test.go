package mutex_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
)

// sink is a publisher that keeps what it gets and fails as it is told.
type sink struct {
	mu   sync.Mutex
	got  []*longshore.Message
	fail func(m *longshore.Message) error // for one message
	down error                            // for all
	hook func()
}

func (s *sink) Publish(_ context.Context, _ string, msgs ...*longshore.Message) error {
	if s.hook != nil {
		s.hook()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	failed := map[int]error{}
	for i, m := range msgs {
		if s.fail != nil {
			if err := s.fail(m); err != nil {
				failed[i] = err
				continue
			}
		}
		s.got = append(s.got, m)
	}
	if len(failed) > 0 {
		return &transport.PartialError{Failed: failed, Total: len(msgs)}
	}
	return nil
}

func (s *sink) Close(context.Context) error { return nil }

func (s *sink) set(f func(s *sink)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *sink) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, m := range s.got {
		ids = append(ids, m.ID)
	}
	return ids
}

func (e *env) outbox(p transport.Publisher, cfg mutex.OutboxConfig) *mutex.Outbox {
	e.t.Helper()
	cfg.Tables = e.tables
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Poll == 0 {
		cfg.Poll = 5 * time.Millisecond
	}
	o, err := mutex.NewOutbox(e.store(), p, cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return o
}

func (e *env) start(o *mutex.Outbox) {
	e.t.Helper()
	if err := o.Relay().Start(context.Background()); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		if err := o.Relay().Stop(context.Background()); err != nil {
			e.t.Error(err)
		}
	})
}

// add commits messages without publishing them: as a crash right after the commit.
func (e *env) add(o *mutex.Outbox, msgs ...*longshore.Message) {
	e.t.Helper()
	tx, err := e.db.BeginTx(context.Background(), nil)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := errors.Join(o.Add(context.Background(), tx, "orders", msgs...), tx.Commit()); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) outboxRows() int { return e.count("SELECT count(*) FROM " + e.tables.Outbox) }

func message(id, key string) *longshore.Message {
	m := &longshore.Message{ID: id, Body: []byte(id)}
	if key != "" {
		m.Key = []byte(key)
	}
	return m
}

// F-N21: what the relay publishes twice, because the answer was lost, has one identity for
// inboxes, whatever the broker makes of it; a header of the producer's own is kept.
func TestWhatTheRelayPublishesTwiceHasOneIdentity(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		s := &sink{}
		lost := map[string]bool{}
		s.fail = func(m *longshore.Message) error {
			if lost[m.ID] {
				return nil
			}
			lost[m.ID] = true
			s.got = append(s.got, m) // the broker has it
			return transport.MaybeSent("a message to orders", "orders", context.DeadlineExceeded)
		}
		o := e.outbox(s, mutex.OutboxConfig{NoMutex: true, RelayOnly: true})
		own := message("with-header", "")
		own.Headers.Set(longshore.HeaderID, "own")
		e.add(o, message("", ""), message("with-id", ""), own)
		e.start(o)
		eventually(t, "all were published", func() bool { return e.outboxRows() == 0 })
		s.set(func(s *sink) {
			copies := map[string]int{}
			for _, m := range s.got {
				id := m.Headers.String(longshore.HeaderID)
				if copies[id]++; id == "" || m.ID == "with-id" && id != "with-id" || m.ID == "with-header" && id != "own" {
					t.Errorf("message %q has the identity %q", m.ID, id)
				}
			}
			if len(copies) != 3 || len(s.got) < 6 {
				t.Errorf("%d publishes of 3 messages have %d identities", len(s.got), len(copies))
			}
		})
	})
}

func TestMessagesArePublishedAfterTheCommit(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		for _, key := range []string{"", "k"} {
			s := &sink{}
			o := e.outbox(s, mutex.OutboxConfig{})
			m := message("", key)
			err := o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
				if err := o.Add(ctx, tx, "orders", m); err != nil {
					return err
				}
				if len(s.ids()) != 0 {
					t.Error("published before the commit")
				}
				return nil
			})
			if err != nil || len(s.got) != 1 || s.got[0].Headers.String(mutex.HeaderMutex) != m.Headers.String(mutex.HeaderMutex) || m.ID == "" {
				t.Fatalf("%v, %+v, %+v", err, s.got, m)
			}
			if e.outboxRows() != 0 || e.count("SELECT count(*) FROM "+e.tables.Mutex+" WHERE id = ?", m.ID) != 1 {
				t.Errorf("%d rows in the outbox", e.outboxRows())
			}
		}
	})
}

func TestNothingIsPublishedOfWhatWasRolledBack(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		s := &sink{}
		o := e.outbox(s, mutex.OutboxConfig{})
		boom := errors.New("boom")
		err := o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(o.Add(ctx, tx, "orders", message("a", ""), message("b", "k")), boom)
		})
		if !errors.Is(err, boom) || len(s.ids()) != 0 || e.outboxRows() != 0 || e.rows() != 0 {
			t.Errorf("%v, %v, %d, %d", err, s.ids(), e.outboxRows(), e.rows())
		}
		if e.db.Stats().InUse != 0 {
			t.Error("a connection is left")
		}
	})
}

func TestRelaySendsWhatACrashLeft(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		s := &sink{}
		o := e.outbox(s, mutex.OutboxConfig{Grace: time.Millisecond})
		e.add(o, message("a", ""), message("b", "k"), message("c", "k"))
		e.start(o)
		eventually(t, "all three sent", func() bool { return len(s.ids()) == 3 })
		eventually(t, "outbox empty", func() bool { return e.outboxRows() == 0 })
		if !s.got[0].Headers.Has(mutex.HeaderRelayed) || e.rows() != 3 {
			t.Errorf("%+v, %d mutex rows", s.got[0].Headers, e.rows())
		}
	})
}

func TestGraceLeavesFreshMessagesToTheirPublisher(t *testing.T) {
	e := open(t, mutex.SQLite)
	s := &sink{}
	o := e.outbox(s, mutex.OutboxConfig{Grace: time.Hour})
	e.add(o, message("a", ""))
	e.start(o)
	e.add(o, message("k", "k"))
	eventually(t, "the one with a key is gone", func() bool { return e.outboxRows() == 1 })
	if !slices.Equal(s.ids(), []string{"k"}) {
		t.Errorf("%v", s.ids())
	}
	var id string
	if err := e.db.QueryRowContext(t.Context(), "SELECT id FROM "+e.tables.Outbox).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if err := o.Flush(t.Context(), id, "unknown"); err != nil || len(s.ids()) != 2 || e.outboxRows() != 0 {
		t.Errorf("%v, %v", err, s.ids())
	}
}

func TestEveryFieldOfAMessageSurvivesTheOutbox(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		s := &sink{}
		o := e.outbox(s, mutex.OutboxConfig{RelayOnly: true, NoMutex: true})
		when := time.Unix(1700000000, 123000000)
		full := &longshore.Message{ID: "f", Key: []byte{0, 255}, Body: []byte{0, 1, 255}, ContentType: "a", ContentEncoding: "b", Type: "c",
			CorrelationID: "d", ReplyTo: "e", AppID: "f", UserID: "g", Timestamp: when, Expiration: time.Minute, Priority: 3, DeliveryMode: 1,
			Headers: longshore.Headers{{Name: "n", Value: int32(5)}, {Name: "n", Value: "again"}, {Name: "z", Value: nil},
				{Name: "t", Value: longshore.Headers{{Name: "x", Value: []any{true, 1.5}}}}, {Name: "w", Value: when}}}
		want := []*longshore.Message{full, {ID: "nil"}, {ID: "empty", Key: []byte{}, Body: []byte{}}}
		for _, m := range want {
			e.add(o, m.Clone())
		}
		e.start(o)
		eventually(t, "all sent", func() bool { return len(s.ids()) == len(want) })
		for _, w := range want {
			got := s.got[slices.Index(s.ids(), w.ID)]
			h := got.Headers
			got.Headers = slices.DeleteFunc(h, func(x longshore.Header) bool { return x.Name == mutex.HeaderRelayed || x.Name == longshore.HeaderID })
			if len(got.Headers) == 0 {
				got.Headers = nil
			}
			if !got.Timestamp.Equal(w.Timestamp) {
				t.Errorf("timestamp %v, want %v", got.Timestamp, w.Timestamp)
			}
			got.Timestamp = w.Timestamp
			for i := range got.Headers {
				if at, ok := got.Headers[i].Value.(time.Time); ok && at.Equal(when) {
					got.Headers[i].Value = when
				}
			}
			if !reflect.DeepEqual(got, w) {
				t.Errorf("got  %+v\nwant %+v", got, w)
			}
		}
	})
}

func TestWhatCannotTravelIsRefusedAtAdd(t *testing.T) {
	e := open(t, mutex.SQLite)
	o := e.outbox(&sink{}, mutex.OutboxConfig{})
	err := o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		for _, m := range []*longshore.Message{nil, {Headers: longshore.Headers{{Name: "x", Value: struct{}{}}}}} {
			if err := o.Add(ctx, tx, "orders", message("good", ""), m); err == nil {
				t.Errorf("%+v was accepted", m)
			}
		}
		return o.Add(ctx, tx, "", message("a", ""))
	})
	if !errors.Is(err, longshore.CodeConfig) || e.outboxRows() != 0 {
		t.Errorf("%v, %d rows", err, e.outboxRows())
	}
}

// A handler behind a mutex publishes with its transaction.
func TestHandlerPublishesWithItsCommit(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.row("a")
		s := &sink{}
		o := e.outbox(s, mutex.OutboxConfig{})
		h := func(result error) longshore.Handler {
			return longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
				tx, err := mutex.TxFrom(ctx)
				if err != nil {
					return err
				}
				return errors.Join(o.Add(ctx, tx, "next", message("n", "")), result)
			})
		}
		_ = run(t, e.mutex(mutex.Config{}), h(errors.New("no")), delivery("a"))
		if len(s.ids()) != 0 || e.outboxRows() != 0 {
			t.Errorf("published by a failed handler: %v", s.ids())
		}
		is(t, run(t, e.mutex(mutex.Config{}), h(nil), delivery("a")), longshore.VerdictAck)
		if len(s.ids()) != 1 || e.outboxRows() != 0 || e.rows() != 1 {
			t.Errorf("%v, %d, %d", s.ids(), e.outboxRows(), e.rows())
		}
	})
}

func TestPoisonIsParkedAndHoldsItsKeyOnly(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		poison := &longshore.Error{Code: longshore.CodeRefused, Err: errors.New("poison")}
		s := &sink{fail: func(m *longshore.Message) error {
			if m.ID == "p" {
				return poison
			}
			return nil
		}}
		cfg := mutex.OutboxConfig{RelayOnly: true, MaxAttempts: 3, RetryDelay: time.Millisecond}
		o := e.outbox(s, cfg)
		e.add(o, message("k1", "k"), message("p", "k"), message("k2", "k"))
		for i := range 49 {
			e.add(o, message(fmt.Sprint(i), fmt.Sprint("other", i)))
		}
		e.start(o)
		eventually(t, "parked", func() bool {
			b, err := o.Backlog(t.Context())
			return err == nil && b.Pending == 2 && b.Parked == 1 && b.Age > 0
		})
		if slices.Contains(s.ids(), "k2") || !slices.Contains(s.ids(), "k1") {
			t.Errorf("%v", s.ids())
		}
		if err := o.Relay().Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		cfg.PassParked = true
		o2 := e.outbox(s, cfg)
		e.start(o2)
		eventually(t, "the one behind it, let pass", func() bool { return slices.Contains(s.ids(), "k2") })
	})
}

func TestBrokerThatIsAwayCountsNothing(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		s := &sink{down: &longshore.Error{Code: longshore.CodeUnreachable}}
		o := e.outbox(s, mutex.OutboxConfig{MaxAttempts: 1})
		err := o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			return o.Add(ctx, tx, "orders", message("a", ""), message("b", "k"))
		})
		if err != nil {
			t.Fatalf("committed is committed: %v", err)
		}
		e.exec("UPDATE " + e.tables.Outbox + " SET due_at = 0")
		e.start(o)
		eventually(t, "some failures", func() bool { return o.Relay().Stats().Failures > 2 })
		s.set(func(s *sink) { s.down = nil })
		eventually(t, "sent", func() bool { return len(s.ids()) == 2 })
	})
}

// A message that takes the channel and the whole batch with it is found and parked.
func TestRowThatBreaksTheChannelIsFound(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		s := &breaker{}
		o := e.outbox(s, mutex.OutboxConfig{RelayOnly: true, MaxAttempts: 1})
		e.add(o, message("a", ""), message("bad", ""), message("b", ""), message("c", "k"), message("d", "k"))
		e.start(o)
		eventually(t, "parked alone", func() bool {
			b, err := o.Backlog(t.Context())
			return err == nil && b.Pending == 1 && b.Parked == 1
		})
		if len(s.ids()) != 4 {
			t.Errorf("%v", s.ids())
		}
	})
}

type breaker struct{ sink }

func (b *breaker) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	for _, m := range msgs {
		if m.ID == "bad" {
			return &longshore.Error{Code: longshore.CodeConnLost}
		}
	}
	return b.sink.Publish(ctx, dest, msgs...)
}

func TestRowThatCannotBeReadIsParked(t *testing.T) {
	e := open(t, mutex.SQLite)
	s := &sink{}
	o := e.outbox(s, mutex.OutboxConfig{RelayOnly: true})
	e.add(o, message("a", ""), message("b", ""))
	e.exec("UPDATE "+e.tables.Outbox+" SET meta = 'junk' WHERE seq = ?", 1)
	e.start(o)
	eventually(t, "one sent, one parked", func() bool {
		b, err := o.Backlog(t.Context())
		return err == nil && b.Pending == 1 && b.Parked == 1 && len(s.ids()) == 1
	})
}
