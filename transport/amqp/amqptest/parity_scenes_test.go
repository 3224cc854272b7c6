package amqptest

import (
	"context"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

type (
	table = amqp091.Table
	pch   = *amqp091.Channel
)

var declareScenes = []scene{
	{"declaring queues wrongly", func(p *player) {
		ch := p.ch()
		p.queue(ch, "parity.q", table{"x-message-ttl": int32(60000)})
		redeclare := func(durable, excl, auto bool, args table) func(pch) error {
			return func(ch pch) error {
				_, err := ch.QueueDeclare("parity.q", durable, auto, excl, false, args)
				return err
			}
		}
		p.fails("not durable", redeclare(false, false, false, table{"x-message-ttl": int32(60000)}))
		p.fails("exclusive", redeclare(true, true, false, table{"x-message-ttl": int32(60000)}))
		p.fails("auto-delete", redeclare(true, false, true, table{"x-message-ttl": int32(60000)}))
		p.fails("no ttl", redeclare(true, false, false, nil))
		p.fails("other ttl", redeclare(true, false, false, table{"x-message-ttl": int32(1)}))
		p.fails("ttl wider", redeclare(true, false, false, table{"x-message-ttl": int64(60000)}))
		p.fails("dlx added", redeclare(true, false, false, table{"x-message-ttl": int32(60000), "x-dead-letter-exchange": "x"}))
		p.fails("unknown added", redeclare(true, false, false, table{"x-message-ttl": int32(60000), "x-other": "x"}))
		p.fails("quorum", redeclare(true, false, false, table{"x-message-ttl": int32(60000), "x-queue-type": "quorum"}))
		p.fails("classic named", redeclare(true, false, false, table{"x-message-ttl": int32(60000), "x-queue-type": "classic"}))
		p.fails("passive", func(ch pch) error {
			_, err := ch.QueueDeclarePassive("parity.missing", true, false, false, false, nil)
			return err
		})
		p.fails("reserved", func(ch pch) error { _, err := ch.QueueDeclare("amq.mine", true, false, false, false, nil); return err })
		p.fails("type", func(ch pch) error {
			_, err := ch.QueueDeclare("parity.t", true, false, false, false, table{"x-queue-type": "odd"})
			return err
		})
	}},
	{"queue arguments out of range", func(p *player) {
		try := func(name string, args table) {
			p.fails(name, func(ch pch) error {
				_, err := ch.QueueDeclare("parity.args", true, false, false, false, args)
				_, _ = p.ch().QueueDelete("parity.args", false, false, false)
				return err
			})
		}
		try("ttl text", table{"x-message-ttl": "1"})
		try("ttl negative", table{"x-message-ttl": int32(-1)})
		try("expires 0", table{"x-expires": int32(0)})
		try("length negative", table{"x-max-length": int32(-1)})
		try("overflow", table{"x-overflow": "odd"})
		try("overflow number", table{"x-overflow": int32(1)})
		try("dlk alone", table{"x-dead-letter-routing-key": "k"})
		try("dlx number", table{"x-dead-letter-exchange": int32(1)})
		try("priority 256", table{"x-max-priority": int32(256)})
		try("priority text", table{"x-max-priority": "3"})
		try("single active text", table{"x-single-active-consumer": "yes"})
		try("classic delivery limit", table{"x-delivery-limit": int32(3)})
		try("quorum priority", table{"x-queue-type": "quorum", "x-max-priority": int32(3)})
		try("quorum overflow dlx", table{"x-queue-type": "quorum", "x-overflow": "reject-publish-dlx"})
		try("unknown", table{"x-nobody-knows": "x"})
		try("consumer timeout", table{"x-consumer-timeout": int32(1000)})
		p.fails("quorum transient", func(ch pch) error {
			_, err := ch.QueueDeclare("parity.args", false, false, false, false, table{"x-queue-type": "quorum"})
			return err
		})
		p.fails("quorum exclusive", func(ch pch) error {
			_, err := ch.QueueDeclare("parity.args", true, false, true, false, table{"x-queue-type": "quorum"})
			return err
		})
		p.fails("quorum auto-delete", func(ch pch) error {
			_, err := ch.QueueDeclare("parity.args", true, true, false, false, table{"x-queue-type": "quorum"})
			_, _ = p.ch().QueueDelete("parity.args", false, false, false)
			return err
		})
	}},
	{"exchanges", func(p *player) {
		ch := p.ch()
		_ = ch.ExchangeDelete("parity.x", false, false)
		if err := ch.ExchangeDeclare("parity.x", "topic", true, false, false, false, nil); err != nil {
			p.t.Fatal(err)
		}
		decl := func(name, kind string, args table) func(pch) error {
			return func(ch pch) error { return ch.ExchangeDeclare(name, kind, true, false, false, false, args) }
		}
		p.fails("other type", decl("parity.x", "direct", nil))
		p.fails("other durability", func(ch pch) error { return ch.ExchangeDeclare("parity.x", "topic", false, false, false, false, nil) })
		p.fails("same", decl("parity.x", "topic", nil))
		p.fails("unknown type", decl("parity.y", "odd", nil))
		p.fails("reserved", decl("amq.mine", "direct", nil))
		p.fails("predeclared", decl("amq.direct", "direct", nil))
		p.fails("predeclared other", decl("amq.direct", "fanout", nil))
		p.fails("default", decl("", "direct", nil))
		p.fails("passive missing", func(ch pch) error {
			return ch.ExchangeDeclarePassive("parity.none", "direct", true, false, false, false, nil)
		})
		p.fails("delete default", func(ch pch) error { return ch.ExchangeDelete("", false, false) })
		p.fails("delete system", func(ch pch) error { return ch.ExchangeDelete("amq.direct", false, false) })
		p.fails("delete missing", func(ch pch) error { return ch.ExchangeDelete("parity.none", false, false) })
		p.queue(p.ch(), "parity.q", nil)
		p.fails("bind missing exchange", func(ch pch) error { return ch.QueueBind("parity.q", "k", "parity.none", false, nil) })
		p.fails("bind missing queue", func(ch pch) error { return ch.QueueBind("parity.none", "k", "parity.x", false, nil) })
		p.fails("bind default", func(ch pch) error { return ch.QueueBind("parity.q", "k", "", false, nil) })
		p.fails("unbind absent", func(ch pch) error { return ch.QueueUnbind("parity.q", "k", "parity.x", nil) })
		p.fails("unbind missing exchange", func(ch pch) error { return ch.QueueUnbind("parity.q", "k", "parity.none", nil) })
		p.fails("unbind missing queue", func(ch pch) error { return ch.QueueUnbind("parity.none", "k", "parity.x", nil) })
		p.fails("bind", func(ch pch) error { return ch.QueueBind("parity.q", "k", "parity.x", false, nil) })
		p.fails("delete in use", func(ch pch) error { return ch.ExchangeDelete("parity.x", true, false) })
		p.fails("headers match odd", func(ch pch) error {
			return ch.QueueBind("parity.q", "k", "amq.headers", false, table{"x-match": "odd"})
		})
		_ = p.ch().ExchangeDelete("parity.x", false, false)
	}},
	{"deleting and using queues", func(p *player) {
		ch := p.ch()
		p.queue(ch, "parity.q", nil)
		p.put(ch, "parity.q", text("1"))
		p.fails("delete missing", func(ch pch) error { _, err := ch.QueueDelete("parity.none", false, false, false); return err })
		p.fails("purge missing", func(ch pch) error { _, err := ch.QueuePurge("parity.none", false); return err })
		p.fails("delete not empty", func(ch pch) error { _, err := ch.QueueDelete("parity.q", false, true, false); return err })
		consume(p.t, ch, "parity.q")
		p.fails("delete in use", func(ch pch) error { _, err := ch.QueueDelete("parity.q", true, false, false); return err })
		p.fails("exclusive consume of a used queue", func(ch pch) error {
			_, err := ch.Consume("parity.q", "", false, true, false, false, nil)
			return err
		})
		p.fails("consume missing", func(ch pch) error {
			_, err := ch.Consume("parity.none", "", false, false, false, false, nil)
			return err
		})
		p.fails("get missing", func(ch pch) error { _, _, err := ch.Get("parity.none", true); return err })
		p.fails("priority text", func(ch pch) error {
			_, err := ch.Consume("parity.q", "", false, false, false, false, table{"x-priority": "x"})
			return err
		})
		p.fails("tag twice", func(ch pch) error {
			if _, err := ch.Consume("parity.q", "t", false, false, false, false, nil); err != nil {
				return err
			}
			_, err := ch.Consume("parity.q", "t", false, false, false, false, nil)
			return err
		})
		p.fails("prefetch size", func(ch pch) error { return ch.Qos(1, 1, false) })
		p.fails("flow off", func(ch pch) error { return ch.Flow(false) })
		p.fails("recover without requeue", func(ch pch) error { return ch.Recover(false) }) //nolint:staticcheck // deprecated, and still there
	}},
	{"another connection's exclusive queue", func(p *player) {
		owner := open(p.t, dial(p.t, p.url))
		if _, err := owner.QueueDeclare("parity.mine", false, false, true, false, nil); err != nil {
			p.t.Fatal(err)
		}
		p.fails("declare", func(ch pch) error {
			_, err := ch.QueueDeclare("parity.mine", false, false, true, false, nil)
			return err
		})
		p.fails("passive", func(ch pch) error {
			_, err := ch.QueueDeclarePassive("parity.mine", false, false, true, false, nil)
			return err
		})
		p.fails("consume", func(ch pch) error {
			_, err := ch.Consume("parity.mine", "", false, false, false, false, nil)
			return err
		})
		p.fails("bind", func(ch pch) error { return ch.QueueBind("parity.mine", "k", "amq.direct", false, nil) })
		p.fails("delete", func(ch pch) error { _, err := ch.QueueDelete("parity.mine", false, false, false); return err })
		p.fails("publish", func(ch pch) error {
			return ch.PublishWithContext(context.Background(), "", "parity.mine", true, false, text("x"))
		})
	}},
}

var publishScenes = []scene{
	{"publishing wrongly", func(p *player) {
		try := func(what, exchange, key string, m amqp091.Publishing) {
			p.fails(what, func(ch pch) error {
				return ch.PublishWithContext(context.Background(), exchange, key, false, false, m)
			})
		}
		try("missing exchange", "parity.none", "k", text("x"))
		try("no queue", "", "parity.none", text("x"))
		try("user id", "", "k", amqp091.Publishing{UserId: "somebody"})
		try("expiration text", "", "k", amqp091.Publishing{Expiration: "soon"})
		try("expiration negative", "", "k", amqp091.Publishing{Expiration: "-1"})
		try("expiration fraction", "", "k", amqp091.Publishing{Expiration: "1.5"})
		try("expiration blank", "", "k", amqp091.Publishing{Expiration: " 5"})
		try("cc text", "", "k", amqp091.Publishing{Headers: table{"CC": "other"}})
		try("bcc number", "", "k", amqp091.Publishing{Headers: table{"BCC": int32(1)}})
		try("cc of numbers", "", "k", amqp091.Publishing{Headers: table{"CC": []any{int32(1)}}})
		try("reply to nobody", "", "k", amqp091.Publishing{ReplyTo: "amq.rabbitmq.reply-to"})
		try("delivery mode", "", "k", amqp091.Publishing{DeliveryMode: 7})
		p.fails("immediate", func(ch pch) error {
			return ch.PublishWithContext(context.Background(), "", "k", false, true, text("x"))
		})
		p.fails("reply consumer with acks", func(ch pch) error {
			_, err := ch.Consume("amq.rabbitmq.reply-to", "", false, false, false, false, nil)
			return err
		})
		p.fails("reply consumer twice", func(ch pch) error {
			if _, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil); err != nil {
				return err
			}
			_, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
			return err
		})
	}},
	{"carbon copies", func(p *player) {
		ch := p.ch()
		for _, q := range []string{"parity.a", "parity.b", "parity.c"} {
			p.queue(ch, q, nil)
		}
		p.put(ch, "parity.a", amqp091.Publishing{Body: []byte("m"), Headers: table{"CC": []any{"parity.b", "parity.a"}, "BCC": []any{"parity.c"}, "h": int32(1)}})
		for _, q := range []string{"parity.a", "parity.b", "parity.c"} {
			p.show(q, p.get(ch, q))
		}
	}},
	{"request and reply", func(p *player) {
		ch := p.ch()
		replies, err := ch.Consume("amq.rabbitmq.reply-to", "tag", true, false, false, false, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		p.queue(ch, "parity.rpc", nil)
		p.put(ch, "parity.rpc", amqp091.Publishing{Body: []byte("ask"), ReplyTo: "amq.rabbitmq.reply-to"})
		server := p.ch()
		ask := p.get(server, "parity.rpc")
		state, err := server.QueueDeclarePassive(ask.ReplyTo, false, false, false, false, nil)
		p.note("rewritten %t; declared %d %d %v", len(ask.ReplyTo) > len("amq.rabbitmq.reply-to."), state.Messages, state.Consumers, err)
		p.put(server, ask.ReplyTo, text("answer"))
		r := next(p.t, replies)
		p.note("%s exchange %q tag %d consumer %s redelivered %t", r.Body, r.Exchange, r.DeliveryTag, r.ConsumerTag, r.Redelivered)
	}},
}

var settleScenes = []scene{
	{"unknown delivery tags", func(p *player) {
		p.queue(p.ch(), "parity.q", nil)
		p.fails("ack 1", func(ch pch) error { return ch.Ack(1, false) })
		p.fails("ack 0", func(ch pch) error { return ch.Ack(0, false) })
		p.fails("ack all of none", func(ch pch) error { return ch.Ack(0, true) })
		p.fails("nack 9 multiple", func(ch pch) error { return ch.Nack(9, true, true) })
		p.fails("reject 9", func(ch pch) error { return ch.Reject(9, true) })
		p.fails("twice", func(ch pch) error {
			p.put(ch, "parity.q", text("1"))
			d := p.get(ch, "parity.q")
			_ = d.Ack(false)
			return d.Ack(false)
		})
		p.fails("multiple up to a settled one", func(ch pch) error {
			for range 3 {
				p.put(ch, "parity.q", text("x"))
			}
			p.get(ch, "parity.q")
			d := p.get(ch, "parity.q")
			_ = d.Ack(false)
			return d.Ack(true)
		})
	}},
	{"requeueing keeps the order of a classic queue", func(p *player) {
		p.requeueScene(nil)
	}},
	{"requeueing in a quorum queue", func(p *player) { p.requeueQuorum(table{"x-queue-type": "quorum"}) }},
	{"requeueing in a quorum queue with a limit", func(p *player) {
		p.requeueQuorum(table{"x-queue-type": "quorum", "x-delivery-limit": int32(9)})
	}},
	{"requeueing in a quorum queue without a limit", func(p *player) {
		if p.version == V3_10.String() {
			p.note("takes -1 for a limit: the first return is the last")
			return
		}
		p.requeueQuorum(table{"x-queue-type": "quorum", "x-delivery-limit": int32(-1)})
	}},
	{"what a consumer of a quorum queue sees", func(p *player) {
		ch := p.ch()
		p.queue(ch, "parity.qc", table{"x-queue-type": "quorum"})
		p.put(ch, "parity.qc", amqp091.Publishing{Body: []byte("m"), Headers: table{"mine": "1"}})
		ds := consume(p.t, ch, "parity.qc")
		d := next(p.t, ds)
		p.show("first", d)
		_ = d.Nack(false, true)
		d = next(p.t, ds)
		p.show("nacked", d)
		_ = d.Reject(true)
		d = next(p.t, ds)
		p.show("rejected", d)
		_ = ch.Close()
		ch = p.ch()
		p.show("closed", next(p.t, consume(p.t, ch, "parity.qc")))
		p.conn.Close()
		ch = p.ch()
		p.show("connection closed", next(p.t, consume(p.t, ch, "parity.qc")))
	}},
	{"priorities", func(p *player) {
		ch := p.ch()
		p.queue(ch, "parity.p", table{"x-max-priority": int32(3)})
		for i, prio := range []uint8{0, 2, 9, 3, 1, 0} {
			p.put(ch, "parity.p", amqp091.Publishing{Body: []byte{byte('a' + i)}, Priority: prio})
		}
		for range 3 {
			p.show("then", p.get(ch, "parity.p"))
		}
		_ = ch.Nack(3, true, true)
		for range 6 {
			p.show("again", p.get(ch, "parity.p"))
		}
	}},
	{"single active consumer with exclusive and get", func(p *player) {
		for _, kind := range []string{"classic", "quorum"} {
			ch := p.ch()
			p.queue(ch, "parity.sac", table{"x-single-active-consumer": true, "x-queue-type": kind})
			p.fails(kind+" exclusive", func(ch pch) error {
				_, err := ch.Consume("parity.sac", "", false, true, false, false, nil)
				return err
			})
			consume(p.t, ch, "parity.sac")
			p.fails(kind+" get", func(ch pch) error { _, _, err := ch.Get("parity.sac", true); return err })
		}
	}},
	{"exclusive consumers", func(p *player) {
		for _, kind := range []string{"classic", "quorum"} {
			ch := p.ch()
			p.queue(ch, "parity.ex", table{"x-queue-type": kind})
			take := func(exclusive bool) func(pch) error {
				return func(ch pch) error {
					_, err := ch.Consume("parity.ex", "", false, exclusive, false, false, nil)
					return err
				}
			}
			p.fails(kind+" first", take(true))
			p.fails(kind+" second", take(false))
			p.fails(kind+" second exclusive", take(true))
			p.fails(kind+" get", func(ch pch) error { _, _, err := ch.Get("parity.ex", true); return err })
		}
	}},
	{"what versions take away", func(p *player) {
		p.fails("transient queue", func(ch pch) error {
			_, err := ch.QueueDeclare("parity.old", false, false, false, false, nil)
			_, _ = p.ch().QueueDelete("parity.old", false, false, false)
			return err
		})
		for _, limit := range []int32{-1, 0, 1} {
			p.fails("delivery limit "+itoa(int(limit)), func(ch pch) error {
				_, err := ch.QueueDeclare("parity.old", true, false, false, false, table{"x-queue-type": "quorum", "x-delivery-limit": limit})
				_, _ = p.ch().QueueDelete("parity.old", false, false, false)
				return err
			})
		}
		for _, kind := range []string{"classic", "quorum"} {
			ch := p.ch()
			p.queue(ch, "parity.old", table{"x-queue-type": kind})
			for range 5 {
				p.put(ch, "parity.old", text("m"))
			}
			p.settled("parity.old", 5)
			p.note("%s: prefetch for the channel %v", kind, ch.Qos(2, 0, true))
			ds, err := ch.Consume("parity.old", "", false, false, false, false, nil)
			if err != nil {
				p.note("consume: %v", err)
				continue
			}
			got := 0
			for more := true; more; {
				select {
				case <-ds:
					got++
				case <-time.After(200 * time.Millisecond):
					more = false
				}
			}
			p.note("%d delivered", got)
		}
	}},
	{"the other settings of a quorum queue", func(p *player) {
		for _, args := range []table{
			{"x-dead-letter-strategy": "at-least-once"}, {"x-dead-letter-strategy": "odd"}, {"x-max-in-memory-length": int32(1)},
			{"x-quorum-initial-group-size": int32(1)}, {"x-queue-leader-locator": "client-local"}, {"x-queue-mode": "lazy"},
			{"x-queue-version": int32(2)}, {"x-message-ttl": int32(1000)}, {"x-expires": int32(1000)}, {"x-overflow": "drop-head"},
		} {
			for _, kind := range []string{"classic", "quorum"} {
				args["x-queue-type"] = kind
				p.fails(showTable(args), func(ch pch) error {
					_, err := ch.QueueDeclare("parity.old", true, false, false, false, args)
					_, _ = p.ch().QueueDelete("parity.old", false, false, false)
					return err
				})
			}
		}
	}},
	{"global prefetch on a quorum queue", func(p *player) {
		p.queue(p.ch(), "parity.qq", table{"x-queue-type": "quorum"})
		p.fails("consume", func(ch pch) error {
			_ = ch.Qos(5, 0, true)
			_, err := ch.Consume("parity.qq", "", false, false, false, false, nil)
			return err
		})
	}},
}

func (p *player) requeueQuorum(args table) {
	ch := p.ch()
	p.queue(ch, "parity.r", args)
	for _, s := range []string{"1", "2", "3", "4", "5"} {
		p.put(ch, "parity.r", text(s))
	}
	_ = ch.Qos(3, 0, false)
	ds := consume(p.t, ch, "parity.r")
	one, two, three := next(p.t, ds), next(p.t, ds), next(p.t, ds)
	_ = two.Nack(false, true)
	p.show("after nack 2", next(p.t, ds))
	_ = one.Nack(false, true)
	_ = three.Reject(true)
	p.show("after nack 1", next(p.t, ds))
	p.show("after reject 3", next(p.t, ds))
	_ = ch.Nack(0, true, true)
	for range 3 {
		p.show("after nack all", next(p.t, ds))
	}
	_ = ch.Close()
	ch = p.ch()
	ds = consume(p.t, ch, "parity.r")
	var last amqp091.Delivery
	for range 5 {
		last = next(p.t, ds)
		p.show("after close", last)
	}
	_ = ch.Cancel(last.ConsumerTag, false)
	_ = ch.Nack(0, true, true)
	p.settled("parity.r", 5)
	for _, take := range []int{2, 4, 5} { // as a browser pages
		var d amqp091.Delivery
		for range take {
			d = p.get(ch, "parity.r")
			p.note("get %s", d.Body)
		}
		_ = d.Nack(true, true)
		p.settled("parity.r", 5)
	}
}

func (p *player) requeueScene(args table) {
	ch := p.ch()
	p.queue(ch, "parity.r", args)
	for _, s := range []string{"1", "2", "3", "4", "5"} {
		p.put(ch, "parity.r", text(s))
	}
	var got []amqp091.Delivery
	for range 3 {
		got = append(got, p.get(ch, "parity.r"))
	}
	_ = got[1].Nack(false, true)
	_ = got[0].Reject(true)
	_ = got[2].Nack(false, true)
	p.settled("parity.r", 5)
	for range 5 {
		got = append(got, p.get(ch, "parity.r"))
		p.show("again", got[len(got)-1])
	}
	_ = ch.Close()
	ch = p.ch()
	p.settled("parity.r", 5)
	for range 5 {
		p.show("after close", p.get(ch, "parity.r"))
	}
	if err := ch.Recover(true); err != nil { //nolint:staticcheck // deprecated, and still there
		p.t.Fatal(err)
	}
	p.settled("parity.r", 5)
	p.show("after recover", p.get(ch, "parity.r"))
}

var deadLetterScenes = []scene{
	{"dead-lettering", func(p *player) {
		for _, kind := range []string{"classic", "quorum"} {
			ch := p.ch()
			p.queue(ch, "parity.dead", nil)
			p.queue(ch, "parity.src", table{"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "parity.dead"})
			p.put(ch, "parity.src", amqp091.Publishing{Body: []byte("rejected"), Headers: table{"mine": "1", "CC": []any{"nobody"}}})
			_ = p.get(ch, "parity.src").Reject(false)
			p.show(kind, p.get(ch, "parity.dead"))
			p.put(ch, "parity.src", amqp091.Publishing{Body: []byte("expired"), Expiration: "20"})
			p.show(kind, p.get(ch, "parity.dead"))
		}
	}},
	{"dead-lettering round and round", func(p *player) {
		ch := p.ch()
		p.queue(ch, "parity.wait", table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "parity.work", "x-message-ttl": int32(10)})
		p.queue(ch, "parity.work", table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "parity.wait"})
		p.put(ch, "parity.work", text("m"))
		for range 3 {
			d := p.get(ch, "parity.work")
			p.show("round", d)
			_ = d.Nack(false, false)
		}
		d := p.get(ch, "parity.work")
		_ = d.Ack(false)
		p.put(ch, "parity.work", amqp091.Publishing{Headers: d.Headers, Body: []byte("republished")})
		_ = p.get(ch, "parity.work").Nack(false, false)
		p.show("republished", p.get(ch, "parity.work"))
	}},
	{"length limits", func(p *player) {
		for _, kind := range []string{"classic", "quorum"} {
			ch := p.ch()
			p.queue(ch, "parity.dead", nil)
			p.queue(ch, "parity.len", table{"x-queue-type": kind, "x-max-length": int32(2), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "parity.dead"})
			for _, s := range []string{"1", "2", "3"} {
				p.put(ch, "parity.len", text(s))
			}
			p.show(kind+" dropped", p.get(ch, "parity.dead"))
			p.show(kind+" kept", p.get(ch, "parity.len"))
		}
	}},
	{"delivery limit", func(p *player) {
		ch := p.ch()
		p.queue(ch, "parity.dead", nil)
		p.queue(ch, "parity.limit", table{"x-queue-type": "quorum", "x-delivery-limit": int32(2), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "parity.dead"})
		p.put(ch, "parity.limit", text("m"))
		for range 3 {
			d := p.get(ch, "parity.limit")
			p.show("try", d)
			_ = d.Reject(true)
		}
		p.show("dead", p.get(ch, "parity.dead"))
	}},
}
