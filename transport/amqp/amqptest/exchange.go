package amqptest

import (
	"reflect"
	"slices"
	"strings"
)

type exchange struct {
	vh                            *vhost
	name, kind                    string
	durable, autoDelete, internal bool
	args                          Table
	bindings                      []*binding
	byKey                         map[string][]*binding
}

type binding struct {
	source *exchange
	queue  *queue
	key    string
	args   Table
}

func newExchange(vh *vhost, name, kind string) *exchange {
	return &exchange{vh: vh, name: name, kind: kind, byKey: map[string][]*binding{}}
}

func (x *exchange) bind(q *queue, key string, args Table) {
	for _, b := range x.byKey[key] {
		if b.queue == q && sameTable(b.args, args) {
			return
		}
	}
	b := &binding{source: x, queue: q, key: key, args: args}
	x.bindings = append(x.bindings, b)
	x.byKey[key] = append(x.byKey[key], b)
	q.bindings = append(q.bindings, b)
}

// unbind removes the binding, and the exchange with its last one if it is
// auto-delete. Removing what is not there is no error.
func (x *exchange) unbind(q *queue, key string, args Table) {
	for _, b := range x.byKey[key] {
		if b.queue == q && sameTable(b.args, args) {
			q.bindings = remove(q.bindings, b)
			x.drop(b)
			return
		}
	}
}

// drop forgets a binding whose queue is going or has forgotten it.
func (x *exchange) drop(b *binding) {
	x.bindings = remove(x.bindings, b)
	if left := remove(x.byKey[b.key], b); len(left) > 0 {
		x.byKey[b.key] = left
	} else {
		delete(x.byKey, b.key)
	}
	if x.autoDelete && len(x.bindings) == 0 {
		x.delete()
	}
}

func (x *exchange) delete() {
	delete(x.vh.exchanges, x.name)
	for _, b := range x.bindings {
		b.queue.bindings = remove(b.queue.bindings, b)
	}
	x.bindings = nil
}

func remove[T comparable](list []T, e T) []T {
	for i := range list {
		if list[i] == e {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}

func sameTable(a, b Table) bool {
	if len(a) != len(b) {
		return false
	}
	for _, f := range a {
		v, ok := b.lookup(f.Name)
		if !ok || !sameValue(v, f.Value) {
			return false
		}
	}
	return true
}

// sameValue compares as RabbitMQ does: integers of any width by value.
func sameValue(a, b any) bool {
	if x, ok := toInt(a); ok {
		y, ok := toInt(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func toInt(v any) (int64, bool) {
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return rv.Int(), true
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(rv.Uint()), true
	}
	return 0, false
}

// route lists the queues a message goes to, each once.
func (vh *vhost) route(x *exchange, m *message) []*queue {
	var out []*queue
	switch x.kind {
	case "fanout":
		return addQueues(out, x.bindings, func(*binding) bool { return true })
	case "headers":
		return addQueues(out, x.bindings, func(b *binding) bool { return headersMatch(b.args, m.headers) })
	}
	for _, key := range m.routing {
		switch {
		case x.name == "":
			if q := vh.queues[key]; q != nil && !slices.Contains(out, q) {
				out = append(out, q)
			}
		case x.kind == "direct":
			out = addQueues(out, x.byKey[key], func(*binding) bool { return true })
		default:
			words := topicWords(key)
			out = addQueues(out, x.bindings, func(b *binding) bool { return topicMatch(topicWords(b.key), words) })
		}
	}
	return out
}

func addQueues(to []*queue, from []*binding, match func(*binding) bool) []*queue {
	for _, b := range from {
		if match(b) && !slices.Contains(to, b.queue) {
			to = append(to, b.queue)
		}
	}
	return to
}

func topicWords(key string) []string {
	if key == "" {
		return nil
	}
	return strings.Split(key, ".")
}

// topicMatch: * is one word, # any number of words.
func topicMatch(pattern, words []string) bool {
	if len(pattern) == 0 {
		return len(words) == 0
	}
	if pattern[0] == "#" {
		for i := 0; i <= len(words); i++ {
			if topicMatch(pattern[1:], words[i:]) {
				return true
			}
		}
		return false
	}
	return len(words) > 0 && (pattern[0] == "*" || pattern[0] == words[0]) && topicMatch(pattern[1:], words[1:])
}

// checkArgs checks what a headers exchange wants of a binding.
func (x *exchange) checkArgs(args Table) error {
	v, ok := args.lookup("x-match")
	if x.kind != "headers" || !ok {
		return nil
	}
	mode, isText := v.(string)
	switch {
	case !isText:
		return softErr(codePreconditionFailed, "Invalid x-match field type %s (value %v); expected longstr", typeName(v), v)
	case mode != "all" && mode != "any" && mode != "all-with-x" && mode != "any-with-x":
		return softErr(codePreconditionFailed, "Invalid x-match field value <<%q>>; expected all, any, all-with-x, or any-with-x", mode)
	}
	return nil
}

func headersMatch(args, headers Table) bool {
	mode, _ := args.Get("x-match").(string)
	any, withX := strings.HasPrefix(mode, "any"), strings.HasSuffix(mode, "-with-x")
	for _, want := range args {
		if want.Name == "x-match" || (!withX && strings.HasPrefix(want.Name, "x-")) {
			continue
		}
		have, ok := headers.lookup(want.Name)
		hit := ok && (want.Value == nil || sameValue(have, want.Value))
		if hit == any {
			return hit
		}
	}
	return !any
}
