package container

import (
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
)

// lastReturn is the verdict on a delivery that the broker gives up at its next return: it
// goes to the dead-letter place with that reason while it is here, because who knows
// whether it comes through its handler. nil where there is no such place, or the message
// is not one of those: then a handler sees it.
func (r *dispatcher) lastReturn(d *longshore.Delivery) error {
	if !d.Origin.LastReturn || r.s.dead.To == "" && r.terms.policy != DeadLetterNative {
		return nil
	}
	return longshore.Reject(&longshore.Error{Code: longshore.CodeReturned, Source: r.s.name,
		Op:   fmt.Sprintf("receive %q message %.64s", r.s.about.Name, idOf(d)),
		Err:  errors.New("it was returned to the broker so often that the next return would be its last"),
		Hint: "returns are stops, cuts and crashes while it was held; if it makes its handler crash, correct that and replay it"})
}

// limitNotice tells at the start of the broker's own limit; "" if there is none.
func (r *dispatcher) limitNotice(caps longshore.Capabilities, policy Policy) string {
	if caps.DeliveryLimit <= 0 || !caps.CountsReturns {
		return ""
	}
	if caps.LimitDeadLetters {
		return fmt.Sprintf("the broker moves a message to its own dead-letter place after %d receives and counts those that no handler saw, such as stops and crashes: its limit should be above MaxAttempts plus some stops", caps.DeliveryLimit)
	}
	fate := "there is no dead-letter place here for messages that come near it; set DeadLetter.To"
	if r.s.dead.To != "" || policy == DeadLetterNative {
		fate = "a message one return away from it is dead-lettered here"
	}
	return fmt.Sprintf("the broker gives up after %d returns and counts those that no handler saw: restarts work off what was received; %s", caps.DeliveryLimit, fate)
}
