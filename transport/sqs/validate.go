package sqs

import (
	"encoding/json"
	"strconv"

	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// This file refuses settings that are valid alone but do not work together, before anything
// is called. Each error names both settings.

// together looks at what is created: SQS refuses each of these, with a word or without.
func (d *Declare) together(queue string) error {
	l := &problem.List{Op: "sqs queue " + quote(queue), Source: queue}
	bad := func(attribute, other, why, todo string) {
		l.Conflict("Declare.Attributes", attribute, other, why, todo)
	}
	a := d.Attributes
	fifo := isFIFO(queue)
	if queue == "" {
		return nil // reported already
	}
	for _, name := range []string{"ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"} {
		if _, set := a[name]; set && !fifo {
			bad(name, "a standard queue", "only FIFO queues have it", "leave it out, or name the queue "+quote(queue+".fifo"))
		}
	}
	if fifo && a["FifoThroughputLimit"] == "perMessageGroupId" && a["DeduplicationScope"] != "messageGroup" {
		bad("FifoThroughputLimit perMessageGroupId", "any DeduplicationScope other than messageGroup", "SQS refuses the combination", "add DeduplicationScope: messageGroup")
	}
	if a["KmsMasterKeyId"] != "" && a["SqsManagedSseEnabled"] == "true" {
		bad("KmsMasterKeyId", "SqsManagedSseEnabled", "a queue is encrypted with one key", "leave one of them out")
	}
	var redrive struct {
		Target string `json:"deadLetterTargetArn"`
	}
	if json.Unmarshal([]byte(a["RedrivePolicy"]), &redrive) != nil {
		return l.Err() // none, or one that SQS will refuse
	}
	switch to, err := parseReference(redrive.Target); {
	case err != nil:
	case to.name == queue:
		bad("RedrivePolicy", "its own queue as deadLetterTargetArn", "dead letters would stay in this queue", "name another queue")
	case isFIFO(to.name) != fifo:
		bad("RedrivePolicy to "+quote(to.name), "queue "+problem.Literal(quote(queue)), "a FIFO queue and its dead-letter queue are both FIFO, or neither is", "name a queue of the same kind")
	}
	return l.Err()
}

// ValidateOpen finds what of a container's wishes cannot be served: dead letters that lead
// nowhere, or back here. Whether there is a redrive policy the queue tells.
func (s *queueSource) ValidateOpen(o transport.OpenOptions) error {
	if o.DeadLetter == "" || s.ref.name == "" {
		return nil
	}
	to, err := parseReference(o.DeadLetter)
	op := "open " + s.title()
	if err != nil {
		return problem.Bad("DeadLetter.To", "use letters, digits, hyphens and underscores, at most 80: for example "+problem.Literal(strconv.Quote(s.ref.stem()+"-dlq")), "%q is not a valid queue name", o.DeadLetter).Of(op, s.ref.name)
	}
	if to.name == s.ref.name && same(to.account, s.ref.account) && same(to.region, s.ref.region) && same(to.url, s.ref.url) {
		return problem.Conflict("DeadLetter.To", strconv.Quote(o.DeadLetter), "the queue it comes from", "dead letters would come back here, over and over", "name another queue").Of(op, s.ref.name)
	}
	return nil
}

// same reports whether two parts of an address agree as far as both are given.
func same(a, b string) bool { return a == "" || b == "" || a == b }
