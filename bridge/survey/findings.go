package survey

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Finding is one thing that does not fit.
type Finding struct {
	Code  string `json:"code"`
	Error bool   `json:"error"` // the move is refused until it is accepted; else a warning
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

// sample is what the messages looked at have in common.
type sample struct {
	identity func(*longshore.Delivery) string
	limit    int

	n, noID, noKey, tooLarge, expiring, replying, delaying int
	largest                                                int
	ids                                                    map[string]int
	keys                                                   map[string]int
	priorities                                             map[uint8]int
	delayed                                                int64
	headersExchange                                        bool
	brokerIDs                                              bool // the source's broker gives each message an id, and the route uses it
}

func newSample(identity func(*longshore.Delivery) string, limit int) *sample {
	if identity == nil {
		identity = longshore.Identity
	}
	return &sample{identity: identity, limit: limit, ids: map[string]int{}, keys: map[string]int{}, priorities: map[uint8]int{}}
}

// add looks at one message.
func (s *sample) add(d *longshore.Delivery) {
	m := d.Received()
	s.n++
	switch id := s.identity(d); {
	case s.brokerIDs: // a look does not show them, and each is its own
	case id == "":
		s.noID++
	default:
		s.ids[id]++
	}
	if len(m.Key) == 0 {
		s.noKey++
	} else {
		s.keys[string(m.Key)]++
	}
	size := len(m.Body)
	s.largest = max(s.largest, size)
	if size > s.limit {
		s.tooLarge++
	}
	if m.Expiration > 0 {
		s.expiring++
	}
	if m.ReplyTo != "" {
		s.replying++
	}
	if m.Priority > 0 {
		s.priorities[m.Priority]++
	}
	if m.Headers.Has("x-delay") {
		s.delaying++
	}
}

// top is the most frequent key and its share.
func (s *sample) top() (key string, share float64) {
	most := 0
	for k, n := range s.keys {
		if n > most || n == most && k < key {
			key, most = k, n
		}
	}
	if s.n == 0 {
		return "", 0
	}
	return key, float64(most) / float64(s.n)
}

// Shares from which a key is hot, and least sizes of a sample that say something.
const (
	hotShare   = 0.2
	leastForID = 2
	leastKeys  = 50
)

// findings is the whole rule. ordered: the target keeps an order by key.
func (s *sample) findings(from, to string, ordered bool) (all []Finding) {
	add := func(is bool, f Finding) {
		if is {
			all = append(all, f)
		}
	}
	of := func(n int) string { return fmt.Sprintf("%d of %d messages", n, s.n) }
	twice := 0
	for _, n := range s.ids {
		twice += n - 1
	}
	add(s.noID > 0, Finding{"NO-ID", true, of(s.noID) + " have no identity: a crash may bring these twice, and no inbox can tell", "write id: header:NAME or id: body, or accept NO-ID"})
	add(s.noID == 0 && s.n >= leastForID && twice > 0, Finding{"NO-ID", true, of(twice) + " have the identity of another message: consumers with an inbox would take them for copies", "choose another id"})
	unordered := from == "aws_sqs" && len(s.keys) == 0 // a standard queue: there is no order to keep
	add(s.noKey > 0 && !unordered && (ordered || len(s.keys) > 0), Finding{"NO-KEY", false, of(s.noKey) + " have no key: no order is kept among them", "write from: {key: header:NAME} where the source is RabbitMQ"})
	key, share := s.top()
	add(s.n >= leastKeys && len(s.keys) > 0 && share > hotShare, Finding{"HOT-KEY", false, fmt.Sprintf("key %.40q has %.0f %% of the messages: they are moved one after the other", key, share*100), "choose a finer key, or expect a slower move"})
	add(s.tooLarge > 0, Finding{"TOO-LARGE", true, fmt.Sprintf("%s are larger than the %d bytes that the target takes", of(s.tooLarge), s.limit), "raise the target's limit, or accept that they are parked"})
	add(s.expiring > 0, Finding{"TTL", false, of(s.expiring) + " expire: the deadline is carried" + only(to, "rabbitmq", ", and the target does not apply it"), ""})
	add(len(s.priorities) > 0 && to != "rabbitmq", Finding{"PRIORITY", false, fmt.Sprintf("%d priorities are used: they are carried, and the target does not honour them", len(s.priorities)), ""})
	add(s.replying > 0, Finding{"REPLY-TO", true, of(s.replying) + " ask for a reply: the queue that they name is on the old broker", "move requesters and repliers together, or accept REPLY-TO"})
	add(s.headersExchange, Finding{"HEADERS-EXCHANGE", false, "a headers exchange routes messages to the source: " + only(to, "rabbitmq", "the target has no such routing, so ") + "producers have to choose the target themselves", ""})
	add(s.delayed > 0 || s.delaying > 0, Finding{"DELAYED", false, fmt.Sprintf("%d messages wait to be due: they are moved when they are, so the move lasts as long", max(s.delayed, int64(s.delaying))), ""})
	return all
}

// only is text for targets of another kind.
func only(to, not, text string) string {
	if to == not {
		return ""
	}
	return text
}

// Open are the codes of errors that are not accepted.
func (r *Report) Open(accepted []string) (codes []string) {
	for _, f := range r.Findings {
		if f.Error && !slices.Contains(accepted, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// Change is what is different on the new broker.
type Change struct {
	What     string `json:"what"`
	Old, New string
}

// changes compares what the brokers promise.
func changes(from, to string) []Change {
	if from == to {
		return nil
	}
	rows := func(kind string) [4]string {
		switch kind {
		case "rabbitmq":
			return [4]string{"by key inside the consumer; one queue", "counted by quorum queues; delivery limit of the queue", "any", "16 MiB by default"}
		case "kafka":
			return [4]string{"by key; a key stays on its partition", "counted by the consumer", "any; other keys go on", "1 MiB by default, a whole batch"}
		case "aws_sqs":
			return [4]string{"FIFO queues by group, standard queues none", "receive count of the queue's redrive policy", "12 h", "1 MiB, attributes included"}
		}
		return [4]string{"–", "–", "–", "–"}
	}
	a, b := rows(from), rows(to)
	var all []Change
	for i, what := range []string{"order", "attempts", "longest retry delay", "largest message"} {
		all = append(all, Change{what, a[i], b[i]})
	}
	return all
}

// Privilege is what the bridge's user needs on one side.
type Privilege struct {
	Side string `json:"side"` // "old" or "new"
	Text string `json:"needs"`
}

func privileges(from, to transport.Description) []Privilege {
	return []Privilege{{"old", needs(from, true)}, {"new", needs(to, false)}}
}

// needs is least privilege on one side. reads: the bridge consumes there; on the way back it
// does so on the other side.
func needs(d transport.Description, reads bool) string {
	switch d.Transport {
	case "rabbitmq":
		if reads {
			return fmt.Sprintf("configure ^longshore\\.bridge\\.|^%s\\.parked$, read ^%s, write ^%s\\.parked$ (write ^%s$ for a rollback); tag monitoring for exact counts", d.Name, d.Name, d.Name, d.Name)
		}
		return fmt.Sprintf("configure and write ^%s, read ^%s$ for a rollback", d.Name, d.Name)
	case "kafka":
		topic, group := d.Name, "the group of from"
		if reads {
			return fmt.Sprintf("READ and DESCRIBE on topic %s, on %s and on groups longshore.bridge.*, WRITE on topic %s.parked", topic, group, topic)
		}
		return fmt.Sprintf("WRITE and DESCRIBE on topic %s (CREATE if it is missing), READ on it and on the group of to", topic)
	case "aws_sqs":
		if reads {
			return strings.Join([]string{"sqs:ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes", "GetQueueUrl", "SendMessage on " + d.Name + "-parked"}, ", ")
		}
		return "sqs:SendMessage, GetQueueAttributes, GetQueueUrl, and for a rollback ReceiveMessage, DeleteMessage, ChangeMessageVisibility on " + d.Name
	}
	return "–"
}
