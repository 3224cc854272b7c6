package interop_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

func fieldsOf(t amqp091.Table) []field {
	fs := []field{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		fs = append(fs, fieldOf(name, t[name]))
	}
	return fs
}

func tableOf(t *testing.T, fs []field) amqp091.Table {
	t.Helper()
	table := amqp091.Table{}
	for _, f := range fs {
		table[f.Name] = f.value(t)
	}
	return table
}

func channel(t *testing.T, url string) *amqp091.Channel {
	t.Helper()
	conn, err := amqp091.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// declared makes durable queues, with a dead-letter queue behind those in dead.
func declared(t *testing.T, ch *amqp091.Channel, dead map[string]string, queues ...string) {
	t.Helper()
	for _, q := range queues {
		args := amqp091.Table{}
		if to := dead[q]; to != "" {
			args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"] = "", to
		}
		if _, err := ch.QueueDeclare(q, true, false, false, false, args); err != nil {
			t.Fatal(err)
		}
	}
}

// taken is what lay in queues.
func taken(t *testing.T, url string, queues ...string) []raw {
	t.Helper()
	var all []raw
	ch := channel(t, url)
	for _, q := range queues {
		for {
			d, ok, err := ch.Get(q, true)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			r := raw{In: q, Headers: fieldsOf(d.Headers), Body: blobOf(d.Body), Properties: map[string]string{}}
			put := func(name, v string) {
				if v != "" && v != "0" {
					r.Properties[name] = v
				}
			}
			put("content-type", d.ContentType)
			put("content-encoding", d.ContentEncoding)
			put("correlation-id", d.CorrelationId)
			put("message-id", d.MessageId)
			put("type", d.Type)
			put("app-id", d.AppId)
			put("reply-to", d.ReplyTo)
			put("expiration", d.Expiration)
			put("priority", strconv.Itoa(int(d.Priority)))
			put("delivery-mode", strconv.Itoa(int(d.DeliveryMode)))
			if !d.Timestamp.IsZero() {
				put("timestamp", d.Timestamp.UTC().Format(time.RFC3339))
			}
			all = append(all, r)
		}
	}
	if err := ch.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// written puts messages back as they were.
func written(t *testing.T, ch *amqp091.Channel, all []raw) {
	t.Helper()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		p := r.Properties
		number := func(name string) uint8 {
			n, _ := strconv.ParseUint(p[name], 10, 8) // absent is 0
			return uint8(n)
		}
		m := amqp091.Publishing{Headers: tableOf(t, r.Headers), ContentType: p["content-type"], ContentEncoding: p["content-encoding"], CorrelationId: p["correlation-id"],
			MessageId: p["message-id"], Type: p["type"], AppId: p["app-id"], ReplyTo: p["reply-to"], Expiration: p["expiration"], Priority: number("priority"), DeliveryMode: number("delivery-mode")}
		if r.Body != nil {
			m.Body = *r.Body
		}
		m.Timestamp, _ = time.Parse(time.RFC3339, p["timestamp"]) // absent is zero
		confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", r.In, false, false, m)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := confirm.WaitContext(bounded(t)); !ok {
			t.Fatal("refused: ", err)
		}
	}
}

// onRabbit checks what Spring wrote: from the files on the embedded server, and from
// the program on a real one.
func onRabbit(t *testing.T, mode string, dead map[string]string, queues []string, write func(t *testing.T, url string), check func(t *testing.T, url string)) {
	t.Helper()
	t.Run("kept", func(t *testing.T) {
		url := amqptest.New(t).URL
		ch := channel(t, url)
		declared(t, ch, dead, queues...)
		written(t, ch, golden(t, mode))
		check(t, url)
	})
	t.Run("spring", func(t *testing.T) {
		needJava(t)
		url := brokertest.AMQP(t)
		declared(t, channel(t, url), dead, queues...)
		keep(t, mode, func() []raw { write(t, url); return taken(t, url, queues...) })
		write(t, url)
		check(t, url)
	})
}
