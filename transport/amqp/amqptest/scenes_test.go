package amqptest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// player plays a scene on a broker and writes down what the client sees.
type player struct {
	t    *testing.T
	url  string
	conn *amqp091.Connection
	out  strings.Builder

	version string // of the broker
}

func (p *player) note(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// ch opens a channel; a connection that an earlier step lost is made again.
func (p *player) ch() *amqp091.Channel {
	if p.conn == nil || p.conn.IsClosed() {
		p.conn = dial(p.t, p.url)
	}
	return open(p.t, p.conn)
}

// fails notes how a step failed and what it took with it.
func (p *player) fails(what string, op func(ch *amqp091.Channel) error) {
	ch, other := p.ch(), p.ch()
	closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
	err := op(ch)
	if err == nil { // asynchronous, or no failure: any answer shows
		// On another channel first: this client may send on a channel for which it
		// has just answered channel.close, which would cost the connection.
		_ = other.Qos(0, 0, false)
		if ch.Qos(0, 0, false) == nil {
			p.note("%s: ok", what)
			return
		}
		err = next(p.t, closed)
	}
	_ = other.Close()
	took := "channel"
	if e := (*amqp091.Error)(nil); errors.As(err, &e) && !e.Recover && p.gone() {
		took = "connection"
	}
	p.note("%s: %s, %v", what, took, err)
}

// gone tells whether the connection has been closed by the broker.
func (p *player) gone() bool {
	_, err := p.conn.Channel()
	return err != nil
}

func (p *player) queue(ch *amqp091.Channel, name string, args amqp091.Table) string {
	_, _ = p.ch().QueueDelete(name, false, false, false)
	p.t.Cleanup(func() {
		if c := dial(p.t, p.url); c != nil {
			_, _ = open(p.t, c).QueueDelete(name, false, false, false)
		}
	})
	return declare(p.t, ch, name, args)
}

func (p *player) put(ch *amqp091.Channel, key string, m amqp091.Publishing) {
	if err := ch.PublishWithContext(context.Background(), "", key, false, false, m); err != nil {
		p.t.Fatal(err)
	}
}

// get polls until the queue has a message.
func (p *player) get(ch *amqp091.Channel, queue string) (d amqp091.Delivery) {
	p.t.Helper()
	until(p.t, "a message in "+queue, func() (ok bool) {
		var err error
		if d, ok, err = ch.Get(queue, false); err != nil {
			p.t.Fatal(err)
		}
		return ok
	})
	return d
}

// settled waits until the queue has n ready messages: a quorum queue takes
// returned ones back asynchronously.
func (p *player) settled(queue string, n int) {
	p.t.Helper()
	ch := p.ch()
	until(p.t, "messages are back", func() bool {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		return err == nil && q.Messages == n
	})
	_ = ch.Close()
}

func showTable(v any) string {
	switch v := v.(type) {
	case amqp091.Table:
		var parts []string
		for k, e := range v {
			parts = append(parts, k+"="+showTable(e))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, " ") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, showTable(e))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case time.Time:
		return "time"
	}
	return fmt.Sprintf("%v", v)
}

func (p *player) show(what string, d amqp091.Delivery) {
	p.note("%s: %q from %q key %q redelivered %t expiration %q headers %s", what, d.Body, d.Exchange, d.RoutingKey, d.Redelivered, d.Expiration, showTable(d.Headers))
}

var record = flag.Bool("record", false, "write what the RabbitMQ at AMQP_URL shows to testdata")

// TestScenesAsOnRabbitMQ plays every scene on each flavor and compares with what
// a client of that RabbitMQ saw (testdata). With AMQP_URL the broker there plays
// them, too; -record notes the result instead of comparing it.
func TestScenesAsOnRabbitMQ(t *testing.T) {
	for f := V3_10; f <= V4_3; f++ {
		want := readScenes(t, f.String())
		for _, s := range scenes() {
			t.Run(f.String()+"/"+s.name, func(t *testing.T) {
				_, got := playScene(t, s, New(t, Config{Flavor: f}).URL)
				compareScene(t, got, want[s.name])
			})
		}
	}
	url := os.Getenv("AMQP_URL")
	if url == "" {
		return
	}
	var all strings.Builder
	version := ""
	for _, s := range scenes() {
		t.Run("broker/"+s.name, func(t *testing.T) {
			var got string
			version, got = playScene(t, s, url)
			fmt.Fprintf(&all, "## %s\n%s\n", s.name, got)
			if !*record {
				compareScene(t, got, readScenes(t, version)[s.name])
			}
		})
	}
	if *record {
		if err := os.WriteFile("testdata/"+version+".txt", []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func playScene(t *testing.T, s scene, url string) (version, seen string) {
	t.Helper()
	p := &player{t: t, url: url}
	conn := dial(t, url)
	version, _ = conn.Properties["version"].(string)
	p.version = version
	s.play(p)
	// The record must not depend on the virtual host that somebody's broker has.
	vhost := fmt.Sprintf("vhost '%s'", conn.Config.Vhost)
	return version, strings.ReplaceAll(p.out.String(), vhost, "vhost '/'")
}

func compareScene(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// readScenes reads the record of a version: scenes by name.
func readScenes(t *testing.T, version string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + version + ".txt")
	if err != nil && !*record {
		t.Skipf("nothing to compare with: RabbitMQ %s has never been recorded (-record does)", version)
	}
	out := map[string]string{}
	for _, part := range strings.Split(string(raw), "## ")[min(1, len(raw)):] {
		name, text, _ := strings.Cut(part, "\n")
		out[name] = strings.TrimSuffix(text, "\n")
	}
	return out
}

type scene struct {
	name string
	play func(*player)
}

func scenes() []scene {
	var all []scene
	for _, group := range [][]scene{declareScenes, publishScenes, settleScenes, deadLetterScenes} {
		all = append(all, group...)
	}
	return all
}
