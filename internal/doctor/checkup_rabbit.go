package doctor

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/rabbitapi"
)

// rabbitQueue is what the management API reports about a queue, as far as it matters.
type rabbitQueue struct {
	Version   string           `json:"-"`
	Alarm     string           `json:"-"` // "memory", "disk" or ""
	DLXBound  bool             `json:"-"` // the dead-letter exchange exists and leads to a queue
	Own       bool             `json:"-"` // the container sees to its dead letters itself
	Type      string           `json:"type"`
	Durable   bool             `json:"durable"`
	Ready     int              `json:"messages_ready"`
	Unacked   int              `json:"messages_unacknowledged"`
	Consumers int              `json:"consumers"`
	Arguments map[string]any   `json:"arguments"`
	Policy    definition       `json:"effective_policy_definition"`
	Key       string           `json:"name"`
	Details   []rabbitConsumer `json:"consumer_details"`
	Stats     *rabbitStats     `json:"message_stats"`
	Capacity  *float64         `json:"consumer_capacity"`
	Wanted    map[string]any   `json:"-"` // arguments that the source declares; nil: none
	Counted   bool             `json:"-"` // Stats were asked for: what is absent is 0
}

// count takes over what the broker counts now. What was ready a moment ago and is neither
// ready nor unacknowledged now may be either: the API's count of unacknowledged messages stays.
func (q *rabbitQueue) count(live map[string]string) {
	if n, err := strconv.Atoi(live["messages"]); err == nil {
		q.Ready = n
	}
	if n, err := strconv.Atoi(live["consumers"]); err == nil {
		q.Consumers = n
	}
}

// ours reports whether a Longshore container consumes from the queue.
func (q *rabbitQueue) ours() bool {
	return slices.ContainsFunc(q.Details, func(c rabbitConsumer) bool { return strings.HasPrefix(c.Tag, tagOfOurs) })
}

// setting finds an argument, or what a policy says instead. Where both do, the broker
// takes the argument; of numbers the lower one.
func (q *rabbitQueue) setting(name string) (any, bool) {
	argument, ok := q.Arguments["x-"+name]
	policy, also := q.Policy[name]
	if _, number := argument.(float64); ok && also && number {
		return rabbitapi.Lower(argument, policy), true
	}
	if ok {
		return argument, true
	}
	return policy, also
}

func (q *rabbitQueue) number(name string) (int, bool) {
	v, ok := q.setting(name)
	n, is := v.(float64)
	return int(n), ok && is
}

func (q *rabbitQueue) text(name string) (string, bool) {
	v, ok := q.setting(name)
	s, is := v.(string)
	return s, ok && is
}

// limit is how many returns a quorum queue allows. Since 4.0 there always is one.
func (q *rabbitQueue) limit() (n int, is bool) {
	if q.Type != "quorum" {
		return 0, false
	}
	if n, ok := q.number("delivery-limit"); ok {
		return n, n >= 0
	}
	major, _, _ := strings.Cut(q.Version, ".")
	if m, err := strconv.Atoi(major); err == nil && m >= 4 {
		return 20, true
	}
	return 0, false
}

func judgeRabbit(q *rabbitQueue, handler time.Duration) []Check {
	var f findings
	if q.Alarm != "" {
		f.add("broker", Bad, "free some "+q.Alarm, "RabbitMQ %s has a %s alarm: publishing is blocked, also of dead letters", q.Version, q.Alarm)
	} else {
		f.add("broker", OK, "", "RabbitMQ %s, no alarm", q.Version)
	}
	if q.Consumers == 0 && q.Ready > 0 {
		f.add("queue", Warn, "start a consumer", "%s, %d ready and no consumer", q.Type, q.Ready)
	} else {
		f.add("queue", OK, "", "%s, %d ready, %d unacknowledged, %s", q.Type, q.Ready, q.Unacked, several(strconv.Itoa(q.Consumers), "consumer"))
	}
	rabbitConsumers(&f, q.Details)
	rabbitView(&f, q)
	rabbitArguments(&f, q.Arguments, q.Wanted)
	if q.Counted && q.Ready+q.Unacked == 0 && (q.Stats == nil || q.Stats.Publish+q.Stats.Deliver == 0) {
		f.add("queue", Warn, "if messages should come, check the name, the virtual host and the bindings; Declare also creates a wrong name", "RabbitMQ has counted no message in this queue")
	}
	if !q.Durable {
		f.add("queue", Warn, "declare it durable", "the queue and its messages are gone when the broker restarts")
	}
	rabbitDeadLetters(&f, q)
	rabbitLease(&f, q, handler)
	return f
}

func rabbitDeadLetters(f *findings, q *rabbitQueue) {
	limit, limited := q.limit()
	exchange, has := q.text("dead-letter-exchange")
	switch {
	case has && !q.DLXBound:
		f.add("limit", Bad, "declare and bind it", "the dead-letter exchange %q leads to no queue: dead letters are dropped", exchange)
	case limited && !has:
		f.add("limit", Bad, "set x-dead-letter-exchange, by a policy for example", "delivery limit %d without a dead-letter exchange: what comes back more often is deleted without a word, and crashes of consumers count", limit)
	case limited && limit < 3:
		f.add("limit", Warn, "set delivery-limit to 5 or more", "delivery limit %d: a crash or two of consumers dead-letters messages that never failed", limit)
	case limited:
		f.add("limit", OK, "", "dead-lettered after %d returns, crashes of consumers among them", limit)
	case !has && q.Own:
		f.add("limit", OK, "", "no delivery limit; the container sees to its dead letters itself")
	case !has && q.ours():
		f.add("limit", Unknown, "name it with --dead, or the container instead of the URL; if no DeadLetter.To is set, RabbitMQ drops rejected messages", "no dead-letter exchange; a dead-letter queue set in the code of the container cannot be seen from here")
	case !has:
		f.add("limit", Warn, "set x-dead-letter-exchange, or DeadLetter.To of the container; where that is set, name the container instead of the URL", "no dead-letter exchange: RabbitMQ drops rejected messages")
	default:
		f.add("limit", OK, "", "dead letters go by exchange %q, no delivery limit", exchange)
	}
	if n, ok := q.number("max-length"); ok && !has {
		if o, _ := q.text("overflow"); o == "" || o == "drop-head" {
			f.add("limit", Bad, "set overflow to reject-publish, or a dead-letter exchange", "more than %d messages push out the oldest, which is dropped", n)
		}
	}
	if ms, ok := q.number("message-ttl"); ok && !has {
		f.add("retention", Warn, "set a dead-letter exchange", "messages older than %s are dropped", span(time.Duration(ms)*time.Millisecond))
	}
}

func rabbitLease(f *findings, q *rabbitQueue, handler time.Duration) {
	timeout, where := 30*time.Minute, "the broker's default; its configured value cannot be read"
	if ms, ok := q.number("consumer-timeout"); ok {
		timeout, where = time.Duration(ms)*time.Millisecond, "set for the queue"
	}
	switch {
	case timeout == 0:
	case handler >= timeout:
		f.add("lease", Bad, "set x-consumer-timeout, or consumer_timeout of the broker, to more than a handler takes with all that waits before it",
			"a handler may take %s; RabbitMQ closes the channel of a message that is not settled after %s (%s), and delivers it again", span(handler), span(timeout), where)
	case handler > timeout/2:
		f.add("lease", Warn, "set it to more than twice what a handler takes", "a handler may take %s, the consumer timeout is %s (%s): what waits before it counts", span(handler), span(timeout), where)
	default:
		f.add("lease", OK, "", "consumer timeout %s (%s)", span(timeout), where)
	}
}
