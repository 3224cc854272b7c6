package container

import (
	"math"
	"sync/atomic"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Deletion says by one word when a message is deleted from its queue: the deletion
// policies of Spring Cloud AWS. It takes the place of Redelivery.MaxAttempts, DeadLetter
// and Settle, which must then be zero.
type Deletion uint8

const (
	// DeleteBySettings leaves it to Redelivery, DeadLetter and Settle.
	DeleteBySettings Deletion = iota
	// DeleteOnSuccess deletes a message whose handler returned nil. Any other comes back
	// with Redelivery.Backoff, until the queue's redrive policy moves it.
	DeleteOnSuccess
	// DeleteAlways deletes a message after its first attempt, failed or not.
	DeleteAlways
	// DeleteNever leaves deleting to the handler, by d.Ack. A message that the handler
	// neither settles nor fails keeps its slot and its lease.
	DeleteNever
	// DeleteNoRedrive is DeleteOnSuccess on a queue with a redrive policy, and
	// DeleteAlways on a queue without.
	DeleteNoRedrive
)

// String is the word of configuration files.
func (d Deletion) String() string {
	switch d {
	case DeleteOnSuccess:
		return "on_success"
	case DeleteAlways:
		return "always"
	case DeleteNever:
		return "never"
	case DeleteNoRedrive:
		return "no_redrive"
	case DeleteBySettings:
	}
	return ""
}

// deletion is the policy in force for one container. NoRedrive depends on the queue, which
// is known once it is open.
type deletion struct {
	by      Deletion    // Config.Deletion
	discard atomic.Bool // NoRedrive: the queue has no dead-letter destination, so a failed message is deleted
}

// apply checks the policy and replaces the settings that it stands for.
func (d Deletion) apply(p *problems, src transport.Source, cfg *Config, batch bool) *deletion {
	out := &deletion{by: d}
	if d == DeleteBySettings {
		return out
	}
	const why, hint = "the policy decides it", "leave one of the two out"
	switch {
	case d > DeleteNoRedrive:
		p.Range("Deletion", uint8(d), "{DeleteOnSuccess}, {DeleteAlways}, {DeleteNever} or {DeleteNoRedrive}")
	case src.Capabilities().HeadOfLineBlocking:
		p.Bad("Deletion", "leave it out", "is %s, but %s is a log: nothing is deleted from it", d, first(cfg.Name, "the source"))
	case d == DeleteNever && batch:
		p.Conflict("Deletion", d, "{Batch}", "the result of a batch handler settles its deliveries", "leave {Deletion} out")
		return out
	}
	if cfg.Redelivery.MaxAttempts != 0 {
		p.Conflict("Deletion", d, "{Redelivery.MaxAttempts}", why, hint)
	}
	if cfg.DeadLetter.To != "" || cfg.DeadLetter.Policy != Default {
		p.Conflict("Deletion", d, "{DeadLetter}", why, hint)
	}
	if cfg.Settle != SettleAuto {
		p.Conflict("Deletion", d, "{Settle}", why, hint)
	}
	cfg.Redelivery.MaxAttempts, cfg.DeadLetter.Policy = math.MaxInt32, DeadLetterKeep
	switch d {
	case DeleteAlways:
		cfg.Redelivery.MaxAttempts, cfg.DeadLetter.Policy = 1, DeadLetterDiscard
	case DeleteNever:
		cfg.Settle = SettleManual
	case DeleteNoRedrive:
		cfg.Redelivery.Classify = out.classifier(cfg.Redelivery.Classify)
	case DeleteBySettings, DeleteOnSuccess:
	}
	return out
}

// opened learns what the queue does with messages that fail, and returns the policy for
// those that a handler rejects.
func (d *deletion) opened(policy Policy, caps longshore.Capabilities) Policy {
	d.discard.Store(!caps.DeadLetter)
	switch {
	case d.by == DeleteBySettings, d.by == DeleteAlways:
	case caps.DeadLetter:
		return DeadLetterNative
	case d.by == DeleteNoRedrive:
		return DeadLetterDiscard
	}
	return policy
}

// classifier deletes what failed if the queue has no dead-letter destination.
func (d *deletion) classifier(user func(error) error) func(error) error {
	return func(err error) error {
		if user != nil {
			if mapped := user(err); mapped != nil {
				return mapped
			}
		}
		if d.discard.Load() {
			return longshore.Discard(err)
		}
		return nil
	}
}
