package amqptest

import (
	amqp091 "github.com/rabbitmq/amqp091-go"
)

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
