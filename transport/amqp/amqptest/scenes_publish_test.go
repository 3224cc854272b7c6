package amqptest

import (
	"context"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

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
