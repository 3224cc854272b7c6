package amqptest

import (
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

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
	{"who is the single active consumer", func(p *player) {
		for _, kind := range []string{"classic", "quorum"} {
			ch := p.ch()
			p.queue(ch, "parity.turn", table{"x-single-active-consumer": true, "x-queue-type": kind})
			all := p.consumers(ch, "parity.turn", []seat{{"first", 0}, {"low", -1}, {"high", 5}, {"higher", 9}})
			for range 4 {
				p.put(ch, "parity.turn", text("m"))
				d := next(p.t, all)
				_ = d.Ack(false)
				p.note("%s: %s", kind, d.ConsumerTag)
				_ = ch.Cancel(d.ConsumerTag, false)
			}
			_ = ch.Close()
		}
	}},
	{"whose turn it is", func(p *player) {
		for _, kind := range []string{"classic", "quorum"} {
			ch := p.ch()
			p.queue(ch, "parity.turn", table{"x-queue-type": kind})
			_ = ch.Qos(2, 0, false)
			all := p.consumers(ch, "parity.turn", []seat{{"a", 0}, {"b", 0}, {"high", 5}, {"c", 0}})
			for range 9 { // nobody acks: two for each, and one waits
				p.put(ch, "parity.turn", text("m"))
			}
			turn := make([]string, 8) // by delivery tag: the goroutines bring them in any order
			for range turn {
				d := next(p.t, all)
				turn[d.DeliveryTag-1] = d.ConsumerTag
			}
			p.note("%s: %v", kind, turn)
			_ = ch.Ack(1, false)
			p.note("then %s", next(p.t, all).ConsumerTag)
			_ = ch.Close()
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

// seat is a consumer with its priority.
type seat struct {
	tag      string
	priority int32
}

// consumers subscribes them in order and brings their deliveries together.
func (p *player) consumers(ch *amqp091.Channel, queue string, seats []seat) <-chan amqp091.Delivery {
	all := make(chan amqp091.Delivery, 100)
	for _, c := range seats {
		ds, err := ch.Consume(queue, c.tag, false, false, false, false, table{"x-priority": c.priority})
		if err != nil {
			p.t.Fatal(err)
		}
		go func() {
			for d := range ds {
				all <- d
			}
		}()
	}
	return all
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
