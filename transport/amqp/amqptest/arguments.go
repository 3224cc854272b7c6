package amqptest

import (
	"fmt"
	"time"
)

// queueArgs are the x-arguments of a queue, understood.
type queueArgs struct {
	quorum         bool
	ttl, expires   time.Duration
	hasTTL         bool
	hasExpires     bool
	maxLength      int64 // -1 = none
	maxBytes       int64
	overflow       string
	dlx, dlk       string
	hasDLX, hasDLK bool
	maxPriority    int64
	singleActive   bool
	limited        bool // there is a delivery limit
	deliveryLimit  int64
	ackTimeout     time.Duration
}

// comparedArgs are those a redeclaration must repeat.
func comparedArgs() []string {
	return []string{
		"x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key",
		"x-dead-letter-strategy", "x-max-length", "x-max-length-bytes", "x-overflow", "x-max-priority",
		"x-single-active-consumer", "x-queue-mode", "x-queue-type", "x-quorum-initial-group-size",
		"x-delivery-limit", "x-max-in-memory-length", "x-max-in-memory-bytes",
	}
}

// typeName is what RabbitMQ calls the type of a value in its error texts.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "void"
	case bool:
		return "bool"
	case int8:
		return "byte"
	case uint8:
		return "unsignedbyte"
	case int16:
		return "short"
	case uint16:
		return "unsignedshort"
	case int32:
		return "signedint"
	case uint32:
		return "unsignedint"
	case int64:
		return "long"
	case float32:
		return "float"
	case float64:
		return "double"
	case string:
		return "longstr"
	case []byte:
		return "binary"
	case Table:
		return "table"
	case []any:
		return "array"
	}
	return fmt.Sprintf("%T", v)
}

func showArg(v any, ok bool) string {
	if !ok {
		return "none"
	}
	return fmt.Sprintf("the value '%v' of type '%s'", v, typeName(v))
}

// inequivalent compares the named arguments of a redeclaration.
func inequivalent(where string, have, got Table, names []string) error {
	for _, name := range names {
		h, hok := have.lookup(name)
		g, gok := got.lookup(name)
		if hok != gok || !sameValue(h, g) {
			got, have := showArg(g, gok), showArg(h, hok)
			if hok && gok && typeName(g) == typeName(h) {
				got, have = fmt.Sprintf("'%v'", g), fmt.Sprintf("'%v'", h)
			}
			return softErr(codePreconditionFailed, "inequivalent arg '%s' for %s: received %s but current is %s", name, where, got, have)
		}
	}
	return nil
}

// argReader collects the first problem of a declaration's arguments.
type argReader struct {
	args  Table
	where string // "queue 'x' in vhost '/'"
	err   error
}

func (r *argReader) invalid(name, reason string) {
	if r.err == nil {
		r.err = softErr(codePreconditionFailed, "invalid arg '%s' for %s: %s", name, r.where, reason)
	}
}

func notInteger(v any) string { return "\"expected integer, got " + typeName(v) + "\"" }

func (r *argReader) number(name string) (int64, bool) {
	v, ok := r.args.lookup(name)
	if !ok {
		return 0, false
	}
	n, isInt := toInt(v)
	switch {
	case !isInt:
		r.invalid(name, notInteger(v))
	case n < 0:
		r.invalid(name, fmt.Sprintf("{value_negative,%d}", n))
	}
	return n, true
}

func (r *argReader) text(name string) (string, bool) {
	v, ok := r.args.lookup(name)
	if !ok {
		return "", false
	}
	s, isText := v.(string)
	if !isText {
		r.invalid(name, fmt.Sprintf("{unacceptable_type,%s}", typeName(v)))
	}
	return s, true
}

func (r *argReader) flag(name string) bool {
	v, ok := r.args.lookup(name)
	if !ok {
		return false
	}
	b, isBool := v.(bool)
	if !isBool {
		r.invalid(name, fmt.Sprintf("{unacceptable_type,%s}", typeName(v)))
	}
	return b
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// readQueueArgs checks a new queue's arguments.
func readQueueArgs(where string, args Table, flavor Flavor) (queueArgs, error) {
	r := &argReader{args: args, where: where}
	a := queueArgs{maxLength: -1, maxBytes: -1}
	kind, typed := r.text("x-queue-type")
	switch {
	case typed && kind == "stream":
		return a, notImplemented("stream queues")
	case typed && kind != "classic" && kind != "quorum":
		r.invalid("x-queue-type", "\"unsupported queue type '"+kind+"'\"")
	}
	a.quorum = kind == "quorum"
	if n, ok := r.number("x-message-ttl"); ok {
		a.ttl, a.hasTTL = millis(n), true
	}
	if n, ok := r.number("x-expires"); ok {
		a.expires, a.hasExpires = millis(n), true
		if n == 0 {
			r.invalid("x-expires", "{value_zero,0}")
		}
	}
	if n, ok := r.number("x-max-length"); ok {
		a.maxLength = n
	}
	if n, ok := r.number("x-max-length-bytes"); ok {
		a.maxBytes = n
	}
	if v, ok := args.lookup("x-dead-letter-exchange"); ok {
		if a.dlx, a.hasDLX = v.(string); !a.hasDLX && r.err == nil {
			r.err = softErr(codePreconditionFailed, "invalid type '%s' for arg 'x-dead-letter-exchange' in %s", typeName(v), where)
		}
	}
	a.dlk, a.hasDLK = r.text("x-dead-letter-routing-key")
	if a.hasDLK && !a.hasDLX {
		r.invalid("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined")
	}
	a.singleActive = r.flag("x-single-active-consumer")
	r.overflow(&a)
	r.byType(&a, flavor)
	return a, r.err
}

func (r *argReader) overflow(a *queueArgs) {
	var ok bool
	if a.overflow, ok = r.text("x-overflow"); !ok {
		return
	}
	switch a.overflow {
	case "drop-head", "reject-publish":
	case "reject-publish-dlx":
	default:
		r.invalid("x-overflow", "invalid_overflow")
	}
}

// onlyFor is the type of queue that has an argument which the other refuses; ""
// = both have it.
func onlyFor(name string, flavor Flavor) string {
	switch name {
	case "x-max-priority", "x-queue-mode", "x-queue-version":
		return "classic"
	case "x-dead-letter-strategy", "x-delivery-limit", "x-quorum-initial-group-size",
		"x-max-in-memory-length", "x-max-in-memory-bytes":
		return "quorum"
	case "x-queue-leader-locator":
		if flavor < V4_0 {
			return "quorum"
		}
	case "x-consumer-timeout":
		if flavor >= V4_3 {
			return "quorum"
		}
	}
	return ""
}

// byType reads what depends on the queue's type and the version.
func (r *argReader) byType(a *queueArgs, flavor Flavor) {
	kind := "classic"
	if a.quorum {
		kind = "quorum"
	}
	for _, f := range r.args {
		if only := onlyFor(f.Name, flavor); only != "" && only != kind && r.err == nil {
			r.err = softErr(codePreconditionFailed, "invalid arg '%s' for %s of queue type rabbit_%s_queue", f.Name, r.where, kind)
		}
	}
	if n, ok := r.number("x-max-priority"); ok {
		if n > 255 {
			r.invalid("x-max-priority", fmt.Sprintf("{max_value_exceeded,%d}", n))
		}
		a.maxPriority = n
	}
	if s, ok := r.text("x-dead-letter-strategy"); ok && s != "at-most-once" && s != "at-least-once" {
		r.invalid("x-dead-letter-strategy", "invalid_dlx_strategy")
	}
	r.limits(a, flavor)
}

func (r *argReader) limits(a *queueArgs, flavor Flavor) {
	v, set := r.args.lookup("x-delivery-limit")
	n, isInt := toInt(v)
	switch {
	case isInt && n == -1: // RabbitMQ 4: no limit, asked for by name; 3.10 takes it for a number
		a.limited = flavor < V4_0
	case set:
		a.limited = true
		n, _ = r.number("x-delivery-limit")
	default:
		a.limited, n = a.quorum && flavor >= V4_0, 20
	}
	a.deliveryLimit = n
	if _, ok := r.args.lookup("x-consumer-timeout"); ok && flavor >= V4_0 {
		n, _ := r.number("x-consumer-timeout")
		a.ackTimeout = millis(n)
	}
}
