package amqptest

import "strings"

func (ch *channel) exchangeDeclare(d *decoder) error {
	d.u16()
	name, kind, flags, args := d.shortstr(), d.shortstr(), d.u8(), decodeTable(d)
	if d.err != nil {
		return nil
	}
	passive, durable, autoDelete, internal, noWait := flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0, flags&16 != 0
	vh := ch.conn.vhost
	if name == "" && !passive {
		return softErr(codeAccessRefused, "operation not permitted on the default exchange")
	}
	x := vh.exchanges[name]
	switch {
	case passive && x == nil:
		return noExchange(vh.name, name)
	case passive:
	case x != nil:
		if err := ch.mayConfigure("exchange", name); err != nil {
			return err
		}
		if err := x.equivalent(kind, durable, autoDelete, internal, args); err != nil {
			return err
		}
	default:
		if err := ch.newExchange(name, kind, args); err != nil {
			return err
		}
		x = newExchange(vh, name, kind)
		x.durable, x.autoDelete, x.internal, x.args = durable, autoDelete, internal, args
		vh.exchanges[name] = x
	}
	if !noWait {
		ch.send(exchangeDeclareOk, nil)
	}
	return nil
}

// newExchange checks what only matters when the exchange is made.
func (ch *channel) newExchange(name, kind string, args Table) error {
	if _, ok := args.lookup("alternate-exchange"); ok {
		return notImplemented("alternate exchanges")
	}
	switch kind {
	case "direct", "fanout", "topic", "headers":
	default:
		if ch.s.cfg.Flavor >= V4_0 {
			return softErr(codePreconditionFailed, "unknown exchange type '%s'", kind)
		}
		return hardErr(codeCommandInvalid, "unknown exchange type '%s'", kind)
	}
	if err := ch.mayConfigure("exchange", name); err != nil {
		return err
	}
	if strings.HasPrefix(name, "amq.") {
		return softErr(codeAccessRefused, "exchange name '%s' contains reserved prefix 'amq.*'", name)
	}
	return nil
}

func (x *exchange) equivalent(kind string, durable, autoDelete, internal bool, args Table) error {
	where := "exchange '" + x.name + "' in vhost '" + x.vh.name + "'"
	if kind != x.kind {
		return softErr(codePreconditionFailed, "inequivalent arg 'type' for %s: received '%s' but current is '%s'", where, kind, x.kind)
	}
	checks := []struct {
		name      string
		got, have bool
	}{{"durable", durable, x.durable}, {"auto_delete", autoDelete, x.autoDelete}, {"internal", internal, x.internal}}
	for _, c := range checks {
		if c.got != c.have {
			return softErr(codePreconditionFailed, "inequivalent arg '%s' for %s: received '%t' but current is '%t'", c.name, where, c.got, c.have)
		}
	}
	return inequivalent(where, x.args, args, []string{"alternate-exchange"})
}

func (ch *channel) exchangeDelete(d *decoder) error {
	d.u16()
	name, flags := d.shortstr(), d.u8()
	vh := ch.conn.vhost
	x := vh.exchanges[name]
	switch {
	case name == "":
		return softErr(codeAccessRefused, "operation not permitted on the default exchange")
	case strings.HasPrefix(name, "amq."):
		return softErr(codeAccessRefused, "deletion of system exchange '%s' in vhost '%s' not allowed", name, vh.name)
	case x == nil: // deleting a missing object succeeds
	default:
		if err := ch.mayConfigure("exchange", name); err != nil {
			return err
		}
		if flags&1 != 0 && len(x.bindings) > 0 {
			return softErr(codePreconditionFailed, "exchange '%s' in vhost '%s' in use", name, vh.name)
		}
		x.delete()
	}
	if flags&2 == 0 {
		ch.send(exchangeDeleteOk, nil)
	}
	return nil
}
