package amqptest

import (
	"context"

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
