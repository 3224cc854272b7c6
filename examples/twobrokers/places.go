package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// place is where everything is; parent and children know it.
type place struct {
	AMQP, Kafka string
	Driver, DSN string
	Name        string // of queue, topic, group; unique on brokers that others use
}

// places takes what the environment names and runs the rest in this process.
func places(dir string) (p place, stop func() error, err error) {
	p = place{AMQP: os.Getenv("AMQP_URL"), Kafka: os.Getenv("KAFKA_ADDRS"), Driver: "pgx", DSN: os.Getenv("PG_DSN"),
		Name: "twobrokers_" + strings.ToLower(rand.Text()[:8])}
	var stops []func() error
	stop = func() error {
		var errs []error
		for _, f := range stops {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	if p.DSN == "" {
		p.Driver = "sqlite"
		p.DSN = "file:" + filepath.Join(dir, "shop.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"
	}
	if p.AMQP == "" {
		server, err := amqptest.Start(amqptest.Config{})
		if err != nil {
			return p, stop, err
		}
		p.AMQP, stops = server.URL, append(stops, server.Close)
	}
	if p.Kafka == "" {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return p, stop, errors.Join(err, stop())
		}
		p.Kafka, stops = strings.Join(cluster.ListenAddrs(), ","), append(stops, func() error { cluster.Close(); return nil })
	}
	return p, stop, nil
}

func (p place) rabbit() transport.Source {
	forgotten := amqp091.Table{"x-expires": int32(10 * time.Minute / time.Millisecond)}
	return amqp.New(p.AMQP, amqp.Config{}).Queue(p.Name, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic, Arguments: forgotten}})
}

// topic is the same on Kafka. The instance keeps its partitions over a kill.
func (p place) topic(instance string) transport.Source {
	b := kafka.New(strings.Split(p.Kafka, ","), kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(time.Second)}})
	return b.Group(p.Name, []string{p.Name}, kafka.GroupConfig{InstanceID: instance, SessionTimeout: 6 * time.Second, RebalanceTimeout: 6 * time.Second,
		Declare: kafka.Declare{Partitions: 4}})
}

func (p place) text() (string, error) {
	b, err := json.Marshal(p)
	return string(b), err
}

// publish puts each id on both brokers. The header is the same, whatever else a broker
// makes of the message.
func publish(ctx context.Context, p place, ids int) error {
	sent := make(chan error, 2)
	for _, src := range []transport.Source{p.rabbit(), p.topic("")} {
		go func() { sent <- publishTo(ctx, src, ids) }()
	}
	return errors.Join(<-sent, <-sent)
}

func publishTo(ctx context.Context, src transport.Source, ids int) (err error) {
	out, ok := src.(transport.Outlet)
	if !ok {
		return fmt.Errorf("%T cannot publish", src)
	}
	pub, self, err := out.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pub.Close(context.WithoutCancel(ctx))) }()
	const batch = 100
	for from := 0; from < ids; from += batch {
		var msgs []*longshore.Message
		for i := from; i < min(from+batch, ids); i++ {
			id := fmt.Sprintf("order-%d", i)
			m := &longshore.Message{Type: "order", Body: []byte(id)}
			m.Headers.Set(longshore.HeaderID, id)
			msgs = append(msgs, m)
		}
		if err := pub.Publish(ctx, self, msgs...); err != nil {
			return err
		}
	}
	return nil
}
