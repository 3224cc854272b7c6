package mutex_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/brokertest"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// What taking the row costs beside the handler's own transaction of one insert, with
// 50 at once: the worst case, where the mutex is half of the work.
func BenchmarkTransaction(b *testing.B) {
	const workers = 50
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprint("mutex=", with), func(b *testing.B) {
			e := open(b, mutex.Postgres)
			e.db.SetMaxOpenConns(workers + 1)
			e.db.SetMaxIdleConns(workers + 1)
			m := e.mutex(mutex.Config{})
			e.exec("INSERT INTO " + e.tables.Mutex + " (id) SELECT g FROM generate_series(1, " + fmt.Sprint(b.N) + ") g")
			ids := make(chan int, b.N)
			for i := range b.N {
				ids <- i + 1
			}
			b.SetParallelism(workers / 2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					id := fmt.Sprint(<-ids)
					var err error
					if with {
						err = m.Wrap(e.effect(nil)).Handle(context.Background(), delivery(id))
					} else {
						err = e.own(id)
					}
					if err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func (e *env) own(id string) error {
	tx, err := e.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(context.Background(), e.bind("INSERT INTO "+e.effects+" (id, n) VALUES (?, 1)"), id); err != nil {
		return err
	}
	return tx.Commit()
}

// What a relay sends beside a publisher of batches of the same size to the same queue.
func BenchmarkRelay(b *testing.B) {
	const batch = 100
	for _, relay := range []bool{false, true} {
		b.Run(fmt.Sprint("relay=", relay), func(b *testing.B) {
			e := open(b, mutex.Postgres)
			broker := amqp.New(brokertest.AMQP(b), amqp.Config{})
			c, err := broker.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}).Open(b.Context(), transport.OpenOptions{Window: 1, MaxWindow: 1})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close(context.Background()) }()
			pub, err := broker.Publisher(amqp.PublisherConfig{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = pub.Close(context.Background()) }()
			o, err := mutex.NewOutbox(e.store(), pub, mutex.OutboxConfig{Tables: e.tables, RelayOnly: true, NoMutex: true, Batch: batch, Logger: zap.NewNop()})
			if err != nil {
				b.Fatal(err)
			}
			msgs := make([]*longshore.Message, batch)
			for i := range msgs {
				msgs[i] = &longshore.Message{Body: make([]byte, 256)}
			}
			if relay {
				for range b.N {
					e.add(o, msgs...)
				}
			}
			b.ResetTimer()
			began := time.Now()
			if relay {
				e.start(o)
				eventually(b, "all sent", func() bool { return o.Relay().Stats().Published >= int64(b.N*batch) })
			} else {
				for range b.N {
					if err := pub.Publish(b.Context(), "orders", msgs...); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N*batch)/time.Since(began).Seconds(), "msg/s")
			b.StopTimer()
		})
	}
}
