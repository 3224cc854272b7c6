package dlq

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp"
)

// The headers of our own dead letters, as the container writes them.
const (
	headerReason   = "longshore-dead-reason"
	headerError    = "longshore-dead-error"
	headerAttempts = "longshore-dead-attempts"
	headerAt       = "longshore-dead-at"
	headerSource   = "longshore-dead-source"
	headerBy       = "longshore-dead-by"
	headerReplays  = "longshore-dead-replays"
	headerID       = "longshore-dead-id"
)

// Facts is what a dead letter says about its failure. What is not known is zero.
type Facts struct {
	// Who gave it up: "longshore", "rabbitmq", "spring-amqp", "spring-kafka", "sqs";
	// "" if nothing in it says that it is a dead letter.
	Who      string
	Reason   string // code of the error, class of the exception, the broker's reason
	Error    string
	Attempts int
	At       time.Time
	Source   string // where it came from, for people
	To       string // the same as a destination for a publisher of this broker
	By       string // container and host, or consumer group
	Replays  int    // how often it was put back before
	Details  []Detail
}

// Detail is one more thing that was written alongside the failure.
type Detail struct{ Name, Value string }

// FactsOf reads the failure headers of a dead letter, whoever wrote them.
func FactsOf(d *longshore.Delivery) Facts {
	var f Facts
	h := d.Received().Headers
	switch {
	case h.Has(headerSource) || h.Has(headerReason):
		f = ours(d, h)
	case h.Has(springOriginalKey) || h.Has(springOriginalExchange) || h.Has(springMessage):
		f = springAMQP(h)
	case springKafkaPrefix(h) != "":
		f = springKafka(h, d)
	case h.Has("x-death"):
		f = brokersDeath(h)
	default:
		f = redriven(d)
	}
	if n, ok := h.Int(headerReplays); ok && n > 0 {
		f.Replays = int(min(n, 1<<30))
	}
	return f
}

func ours(d *longshore.Delivery, h longshore.Headers) Facts {
	f := Facts{Who: "longshore", Reason: h.String(headerReason), Error: h.String(headerError), Source: h.String(headerSource), By: h.String(headerBy)}
	if n, ok := h.Int(headerAttempts); ok {
		f.Attempts = int(min(max(n, 0), 1<<30))
	}
	f.At, _ = time.Parse(time.RFC3339Nano, h.String(headerAt))
	f.To = queueDest(d, f.Source)
	return f
}

// queueDest is the destination that leads to a queue or topic of the delivery's
// broker.
func queueDest(d *longshore.Delivery, name string) string {
	if name != "" && d.Origin.Transport() == "rabbitmq" {
		return amqp.To("", name)
	}
	return name
}

// brokersDeath reads the newest entry of RabbitMQ's x-death: the first one.
func brokersDeath(h longshore.Headers) Facts {
	f := Facts{Who: "rabbitmq"}
	v, _ := h.Get("x-death")
	list, _ := v.([]any)
	for i, x := range list {
		death, _ := x.(longshore.Headers)
		if i > 0 {
			f.Details = append(f.Details, Detail{"died before", fmt.Sprintf("%s in %q", death.String("reason"), death.String("queue"))})
			continue
		}
		f.Reason, f.Source = death.String("reason"), death.String("queue")
		if f.Source != "" {
			f.To = amqp.To("", f.Source)
		}
		if t, ok := death.Get("time"); ok {
			f.At, _ = t.(time.Time)
		}
		if n, ok := death.Int("count"); ok {
			f.Details = append(f.Details, Detail{"died there", fmt.Sprintf("%d times", n)})
		}
	}
	return f
}

// redriven reads what SQS reports about a message that its redrive policy moved.
func redriven(d *longshore.Delivery) Facts {
	m, ok := d.Native().(*types.Message)
	if !ok {
		return Facts{}
	}
	arn := m.Attributes["DeadLetterQueueSourceArn"]
	if arn == "" {
		return Facts{}
	}
	return Facts{Who: "sqs", Reason: "redrive", Source: arn[strings.LastIndexByte(arn, ':')+1:], To: arn}
}

// ID is the id by which people name a dead letter: its identity where it came from, as
// the logs have it; on SQS else what AWS shows; or where it has none one that is made of
// its content and begins with "~".
func ID(d *longshore.Delivery) string {
	m := d.Received()
	if !m.Headers.Has(longshore.HeaderID) {
		if id := m.Headers.String(headerID); id != "" {
			return id
		}
		if id := awsID(d); id != "" {
			return id
		}
	}
	if id := longshore.Identity(d); id != "" {
		return id
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %q %d ", m.Key, m.CorrelationID, m.Type, m.Timestamp.Unix())
	_, _ = h.Write(m.Body)
	return "~" + hex.EncodeToString(h.Sum(nil)[:8])
}

func awsID(d *longshore.Delivery) string {
	n, ok := d.Native().(*types.Message)
	if !ok || n.MessageId == nil {
		return ""
	}
	return *n.MessageId
}

// Named reports whether id means this dead letter: its [ID], the id that it was published
// with, or, on SQS, the MessageId that it has now or had in the queue it came from.
func Named(d *longshore.Delivery, id string) bool {
	if id == "" {
		return false
	}
	m := d.Received()
	if id == m.ID || id == ID(d) || id == awsID(d) {
		return true
	}
	if d.Origin.Transport() != "aws_sqs" {
		return false
	}
	last := func(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }
	if origin := m.Headers.String(headerID); origin != "" {
		return id == last(origin)
	}
	return strings.HasPrefix(id, "s.") && last(id) == awsID(d) // moved by SQS, which keeps it
}
