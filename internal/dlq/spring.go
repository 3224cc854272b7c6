package dlq

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp"
)

// The headers of spring-amqp's RepublishMessageRecoverer.
const (
	springOriginalExchange = "x-original-exchange"
	springOriginalKey      = "x-original-routingKey"
	springMessage          = "x-exception-message"
	springStack            = "x-exception-stacktrace"
)

func springAMQP(h longshore.Headers) Facts {
	f := Facts{Who: "spring-amqp", Error: h.String(springMessage)}
	var cause string
	if f.Reason, cause = exceptionOf(h.String(springStack)); !strings.Contains(f.Error, cause) {
		f.Error = joined(f.Error, cause) // the header has what the listener threw, not what that was thrown for
	}
	exchange, key := h.String(springOriginalExchange), h.String(springOriginalKey)
	f.Source = key
	if exchange != "" {
		f.Source = exchange + "/" + key
	}
	if exchange != "" || key != "" {
		f.To = amqp.To(exchange, key)
	}
	if stack := h.String(springStack); stack != "" {
		f.Details = append(f.Details, Detail{"stack", stack})
	}
	return f
}

// exceptionOf is the class that a Java stack trace begins with, and what it says; of
// nested ones the innermost cause, since Spring wraps what a listener throws.
func exceptionOf(stack string) (class, text string) {
	for line := range strings.Lines(stack) {
		cause, nested := strings.CutPrefix(strings.TrimSpace(line), "Caused by: ")
		if class != "" && !nested {
			continue
		}
		name, says, _ := strings.Cut(cause, ":")
		if strings.Contains(name, ".") && !strings.ContainsAny(name, " \t(") {
			class, text = name, strings.TrimSpace(says)
		}
	}
	return class, text
}

func joined(text, cause string) string { return strings.TrimPrefix(text+": "+cause, ": ") }

// springKafkaPrefix is what the headers of spring-kafka's DeadLetterPublishingRecoverer
// begin with: its own default, or that of retry topics.
func springKafkaPrefix(h longshore.Headers) string {
	for _, prefix := range []string{"kafka_dlt-", "kafka_"} {
		if h.Has(prefix+"original-topic") || h.Has(prefix+"exception-fqcn") {
			return prefix
		}
	}
	return ""
}

// Two headers of it have one name, whatever the prefix of the others.
const (
	springKafkaGroup    = "kafka_dlt-original-consumer-group"
	springKafkaAttempts = "retry_topic-attempts"
)

// springKafka reads them. They may be there several times, since a retry topic adds its
// own to those it got; the first of the original ones describes the first failure, the
// last of the exceptions and attempts of the last one.
func springKafka(h longshore.Headers, d *longshore.Delivery) Facts {
	p := springKafkaPrefix(h)
	last := func(name string) string {
		vs := h.Values(name)
		if len(vs) == 0 {
			return ""
		}
		return longshore.Headers{{Value: vs[len(vs)-1]}}.String("")
	}
	f := Facts{Who: "spring-kafka", Source: h.String(p + "original-topic"), By: h.String(springKafkaGroup),
		Reason: last(p + "exception-cause-fqcn"), Error: last(p + "exception-message"), At: d.Timestamp}
	if f.Reason == "" {
		f.Reason = last(p + "exception-fqcn")
	}
	// The headers name what the listener threw, the stack trace what that was thrown for.
	if _, cause := exceptionOf(last(p + "exception-stacktrace")); !strings.Contains(f.Error, cause) {
		f.Error = joined(f.Error, cause)
	}
	f.To = queueDest(d, f.Source)
	if n, ok := bigEndian(last(springKafkaAttempts)); ok {
		f.Attempts = int(min(max(n-1, 0), 1<<30)) // it has the number of the attempt that would come next
	}
	partition, hasPartition := bigEndian(h.String(p + "original-partition"))
	offset, hasOffset := bigEndian(h.String(p + "original-offset"))
	if hasPartition && hasOffset {
		f.Details = append(f.Details, Detail{"original record", f.Source + "/" + strconv.FormatInt(partition, 10) + " offset " + strconv.FormatInt(offset, 10)})
	}
	for _, name := range []string{"exception-fqcn", "exception-stacktrace", "key-exception-message"} {
		if v := last(p + name); v != "" && v != f.Reason {
			f.Details = append(f.Details, Detail{name, v})
		}
	}
	return f
}

// bigEndian reads a number that Spring wrote as the bytes of a Java int or long; before
// 2.8 it wrote attempts as one byte.
func bigEndian(b string) (int64, bool) {
	switch len(b) {
	case 1:
		return int64(b[0]), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32([]byte(b)))), true //nolint:gosec // Java's int
	case 8:
		return int64(binary.BigEndian.Uint64([]byte(b))), true //nolint:gosec // Java's long
	}
	return 0, false
}
