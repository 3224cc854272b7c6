package mutex_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// sick is a database that refuses every transaction until it is well.
type sick struct {
	mutex.Store
	well *atomic.Bool
}

func (s sick) Begin(ctx context.Context) (mutex.Tx, error) {
	if !s.well.Load() {
		return nil, errors.New("connection refused")
	}
	return s.Store.Begin(ctx)
}

// Each alarm of the mutex, the outbox and the relay has its all-clear, at the same level,
// once, with the time that it lasted.
func TestAlarmsOfMutexAndOutboxAreCleared(t *testing.T) {
	e := open(t, mutex.SQLite)
	core, logs := observer.New(zap.InfoLevel)
	cleared := func(alarm, clear string) {
		t.Helper()
		eventually(t, clear, func() bool { return logs.FilterMessage(clear).Len() == 1 })
		if n := logs.FilterMessage(alarm).Len(); n != 1 {
			t.Errorf("%d lines %q", n, alarm)
		}
		line := logs.FilterMessage(clear).All()[0]
		if line.Level != zap.WarnLevel || line.ContextMap()["after"] == nil {
			t.Errorf("%s %s %v", line.Level, clear, line.ContextMap())
		}
	}

	var well atomic.Bool
	m := e.mutexOn(sick{e.store(), &well}, mutex.Config{Logger: zap.New(core)})
	e.row("a")
	is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictRelease)
	well.Store(true)
	is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
	cleared("mutex gives a delivery back", "mutex handles deliveries again")

	away := &longshore.Error{Code: longshore.CodeConnLost, Op: "publish"}
	pub := &sink{down: away}
	o := e.outbox(pub, mutex.OutboxConfig{Logger: zap.New(core), NoMutex: true})
	send := func(id string) {
		t.Helper()
		err := o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error { return o.Add(ctx, tx, "orders", message(id, "k")) })
		if err != nil {
			t.Fatal(err)
		}
	}
	send("one")
	pub.set(func(s *sink) { s.down = nil })
	send("two")
	cleared("not published after the commit; the relay will", "published after the commit again")

	pub.set(func(s *sink) { s.down = away })
	e.add(o, message("three", "k"))
	e.start(o)
	eventually(t, "the relay fails", func() bool { return logs.FilterMessage("outbox relay failed").Len() == 1 })
	pub.set(func(s *sink) { s.down = nil })
	cleared("outbox relay failed", "outbox relay works again")
}
