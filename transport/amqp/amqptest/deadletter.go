package amqptest

import "time"

// deadLetter publishes m to the queue's dead-letter exchange, or drops it when
// there is none. There is no confirm: what cannot be routed is gone, as with
// RabbitMQ's default strategy.
func (q *queue) deadLetter(m *message, reason string) {
	if !q.hasDLX {
		return
	}
	x := q.vh.exchanges[q.dlx]
	if x == nil {
		return
	}
	dead := q.deadMessage(m, reason)
	for _, target := range q.vh.route(x, dead) {
		if reason == "rejected" || !isCycle(target.name, deathsOf(dead)) {
			target.publish(dead)
		}
	}
}

func (q *queue) deadMessage(m *message, reason string) *message {
	dead := &message{wasHeld: reason == "rejected" || reason == "delivery_limit", exchange: q.dlx, key: m.key, body: m.body, routing: m.routing,
		persistent: m.persistent, priority: m.priority}
	p, _ := splitProperties(m.props) // was checked when it was published
	headers := m.headers
	event := q.death(m, &p, reason)
	if q.s.cfg.Flavor >= V4_0 {
		dead.deaths = addDeath(m.deaths, event)
		headers = headersV4(headers, dead.deaths, event)
	} else {
		headers = headersV3(headers, event)
	}
	if q.hasDLK {
		dead.key, dead.routing = q.dlk, []string{q.dlk}
		if q.s.cfg.Flavor < V4_0 {
			headers = headers.without("CC")
		}
	}
	p.field[propExpiration] = nil
	p.setHeaders(headers)
	dead.headers, dead.props = headers, p.encode()
	return dead
}

// death is the x-death entry for this event, fields sorted as RabbitMQ sorts them.
func (q *queue) death(m *message, p *properties, reason string) Table {
	keys := []any{m.key}
	if cc, ok := m.headers.Get("CC").([]any); ok {
		keys = append(keys, cc...)
	}
	t := Table{{"count", int64(1)}, {"exchange", m.exchange}}
	if p.field[propExpiration] != nil {
		t = append(t, Field{"original-expiration", p.text(propExpiration)})
	}
	return append(t, Field{"queue", q.name}, Field{"reason", reason},
		Field{"routing-keys", keys}, Field{"time", q.s.now.Truncate(time.Second)})
}

// addDeath puts event first: a repeated one (same queue and reason) as the old
// entry with its count raised.
func addDeath(deaths []Table, event Table) []Table {
	rest := make([]Table, 0, len(deaths)+1)
	rest = append(rest, event)
	for _, d := range deaths {
		if d.Get("queue") == event.Get("queue") && d.Get("reason") == event.Get("reason") {
			n, _ := toInt(d.Get("count"))
			rest[0] = d.with("count", n+1)
			continue
		}
		rest = append(rest, d)
	}
	return rest
}

func deathArray(deaths []Table) []any {
	out := make([]any, len(deaths))
	for i, d := range deaths {
		out[i] = d
	}
	return out
}

func deathsOf(m *message) (deaths []Table) {
	list, _ := m.headers.Get("x-death").([]any)
	for _, e := range list {
		if t, ok := e.(Table); ok {
			deaths = append(deaths, t)
		}
	}
	return deaths
}

// headersV3 counts on whatever x-death the message carries.
func headersV3(h Table, event Table) Table {
	old := deathsOf(&message{headers: h})
	first := h.Get("x-death") == nil
	h = h.with("x-death", deathArray(addDeath(old, event)))
	if first {
		for _, f := range []string{"exchange", "queue", "reason"} {
			h = h.with("x-first-death-"+f, event.Get(f))
		}
	}
	return h
}

// headersV4 writes what the broker itself has recorded over whatever was there.
func headersV4(h Table, deaths []Table, event Table) Table {
	if len(deaths) == 1 && deaths[0].Get("count") == int64(1) {
		for _, f := range []string{"exchange", "queue", "reason"} {
			h = h.with("x-first-death-"+f, event.Get(f))
		}
	}
	for _, f := range []string{"exchange", "queue", "reason"} {
		h = h.with("x-last-death-"+f, event.Get(f))
	}
	return h.with("x-death", deathArray(deaths))
}

// isCycle reports whether a message comes back to a queue it died in with no
// rejection on the way: it would go round for ever.
func isCycle(queue string, deaths []Table) bool {
	for _, d := range deaths {
		if d.Get("reason") == "rejected" {
			return false
		}
		if d.Get("queue") == queue {
			return true
		}
	}
	return false
}
