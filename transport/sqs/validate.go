package sqs

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// This file is about settings that are right by themselves and not together: refused
// before anything is called, each pair by the names of both.

func notWith(op, source, field, other, why, todo string) error {
	return &longshore.Error{Code: longshore.CodeConfig, Op: op, Source: source,
		Err: fmt.Errorf("%s does not go with %s: %s", field, other, why), Hint: todo}
}

// together looks at what is created: SQS refuses each of these, with a word or without.
func (d *Declare) together(queue string) []error {
	var errs []error
	bad := func(attribute, other, why, todo string) {
		errs = append(errs, notWith("sqs queue "+quote(queue), queue, "Declare.Attributes "+attribute, other, why, todo))
	}
	a := d.Attributes
	fifo := isFIFO(queue)
	if queue == "" {
		return nil // that is told already
	}
	for _, name := range []string{"ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"} {
		if _, set := a[name]; set && !fifo {
			bad(name, "a standard queue", "only FIFO queues have it", "leave it out, or name the queue "+quote(queue+".fifo"))
		}
	}
	if fifo && a["FifoThroughputLimit"] == "perMessageGroupId" && a["DeduplicationScope"] != "messageGroup" {
		bad("FifoThroughputLimit perMessageGroupId", "another DeduplicationScope than messageGroup", "SQS allows it only so", "add DeduplicationScope: messageGroup")
	}
	if a["KmsMasterKeyId"] != "" && a["SqsManagedSseEnabled"] == "true" {
		bad("KmsMasterKeyId", "SqsManagedSseEnabled", "a queue is encrypted by one key", "leave one of them out")
	}
	var redrive struct {
		Target string `json:"deadLetterTargetArn"`
	}
	if json.Unmarshal([]byte(a["RedrivePolicy"]), &redrive) != nil {
		return errs // none, or one that SQS will tell of
	}
	switch to, err := parseReference(redrive.Target); {
	case err != nil:
	case to.name == queue:
		bad("RedrivePolicy", "its own queue as deadLetterTargetArn", "dead letters would stay among the others", "name another queue")
	case isFIFO(to.name) != fifo:
		bad("RedrivePolicy to "+quote(to.name), "queue "+quote(queue), "a FIFO queue and its dead-letter queue are both FIFO, or neither is", "name a queue of the same kind")
	}
	return errs
}

// ValidateOpen finds what of a container's wishes cannot be served: dead letters that lead
// nowhere, or back here. Whether there is a redrive policy the queue tells.
func (s *queueSource) ValidateOpen(o transport.OpenOptions) error {
	if o.DeadLetter == "" || s.ref.name == "" {
		return nil
	}
	to, err := parseReference(o.DeadLetter)
	if err != nil {
		return &longshore.Error{Code: longshore.CodeConfig, Op: fmt.Sprintf("open %s: DeadLetter.To %q", s.title(), o.DeadLetter), Source: s.ref.name,
			Err: err, Hint: "write for example " + strconv.Quote(s.ref.stem()+"-dlq") + " in DeadLetter.To"}
	}
	if to.name == s.ref.name && same(to.account, s.ref.account) && same(to.region, s.ref.region) && same(to.url, s.ref.url) {
		return notWith("open "+s.title(), s.ref.name, fmt.Sprintf("DeadLetter.To %q", o.DeadLetter), "the queue it comes from", "what failed for the last time would come here again, for ever", "name another queue")
	}
	return nil
}

// same tells whether two parts of an address agree as far as both are given.
func same(a, b string) bool { return a == "" || b == "" || a == b }
