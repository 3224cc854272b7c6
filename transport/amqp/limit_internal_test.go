package amqp

import (
	"encoding/json"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// F-N15: what is known of a delivery limit, from the declaration and the broker's version.
func TestLimitByDeclaration(t *testing.T) {
	args := func(n int) amqp091.Table { return amqp091.Table{"x-delivery-limit": n} }
	for _, like := range []struct {
		cfg     QueueConfig
		version conn.Version
		basis   limitBasis
		n       int
	}{
		{QueueConfig{Declare: Declare{Type: Quorum}}, conn.Version{3, 10}, limitNone, 0},
		{QueueConfig{Declare: Declare{Type: Quorum}}, conn.Version{3, 13}, limitNone, 0},
		{QueueConfig{Declare: Declare{Type: Quorum}}, conn.Version{4, 0}, limitKnown, 20},
		{QueueConfig{Declare: Declare{Type: Quorum}}, conn.Version{4, 3}, limitKnown, 20},
		{QueueConfig{Declare: Declare{Type: Quorum, Arguments: args(3)}}, conn.Version{3, 10}, limitKnown, 3},
		{QueueConfig{Declare: Declare{Arguments: args(0)}}, conn.Version{4, 0}, limitKnown, 0},
		{QueueConfig{Declare: Declare{Type: Quorum, Arguments: args(-1)}}, conn.Version{4, 0}, limitNone, 0},
		{QueueConfig{Declare: Declare{Type: Classic}}, conn.Version{4, 0}, limitNone, 0},
		{QueueConfig{}, conn.Version{3, 10}, limitNone, 0},
		{QueueConfig{}, conn.Version{4, 0}, limitAssumed, 20},
		{QueueConfig{Declare: Declare{Type: Quorum}, AutoAck: true}, conn.Version{4, 0}, limitNone, 0},
	} {
		if l := declaredLimit(&like.cfg, like.version); l.basis != like.basis || l.n != like.n {
			t.Errorf("%+v on %v: %+v, want %v of %d", like.cfg.Declare, like.version, l, like.basis, like.n)
		}
	}
}

// F-N15: the same from the management API, whose answers these are.
func TestLimitByManagement(t *testing.T) {
	for _, like := range []struct {
		answer  string
		version conn.Version
		basis   limitBasis
		n       int
	}{
		{`{"type":"classic","arguments":{}}`, conn.Version{4, 0}, limitNone, 0},
		{`{"type":"quorum","arguments":{"x-queue-type":"quorum"}}`, conn.Version{3, 10}, limitNone, 0},
		{`{"type":"quorum","arguments":{"x-queue-type":"quorum"}}`, conn.Version{4, 0}, limitKnown, 20},
		{`{"type":"quorum","arguments":{"x-delivery-limit":7}}`, conn.Version{3, 10}, limitKnown, 7},
		{`{"type":"quorum","arguments":{"x-delivery-limit":7},"effective_policy_definition":{"delivery-limit":5}}`, conn.Version{3, 10}, limitKnown, 5},
		{`{"type":"quorum","arguments":{},"effective_policy_definition":[]}`, conn.Version{4, 0}, limitKnown, 20},
		{`{"type":"quorum","arguments":{"x-delivery-limit":7},"delivery_limit":5,"effective_policy_definition":{"delivery-limit":5}}`, conn.Version{4, 0}, limitKnown, 5},
		{`{"type":"quorum","arguments":{"x-delivery-limit":-1},"delivery_limit":"unlimited"}`, conn.Version{4, 0}, limitNone, 0},
		{`{"type":"quorum","arguments":{"x-delivery-limit":-1}}`, conn.Version{4, 0}, limitNone, 0},
	} {
		f := &queueFacts{}
		if err := json.Unmarshal([]byte(like.answer), f); err != nil {
			t.Fatal(err)
		}
		if l := factualLimit(f, like.version); l.basis != like.basis || l.n != like.n {
			t.Errorf("%s on %v: %+v, want %v of %d", like.answer, like.version, l, like.basis, like.n)
		}
	}
}

// F-N15: what is near a limit is told of where the limit is certain, and never returned as
// it is; what has a place to keep only where it would be lost.
func TestWhatIsNearALimit(t *testing.T) {
	for _, like := range []struct {
		l                   limit
		returns             int
		last, renew, placed bool
	}{
		{limit{}, 1000, false, false, false},
		{limit{basis: limitKnown, n: 3}, 1, false, false, false},
		{limit{basis: limitKnown, n: 3}, 2, false, true, false},
		{limit{basis: limitKnown, n: 3}, 3, true, true, true},
		{limit{basis: limitKnown, n: 0}, 0, true, true, true},
		{limit{basis: limitAssumed, n: 20}, 19, false, true, false},
		{limit{basis: limitAssumed, n: 20}, 20, false, true, true},
	} {
		if a, b, c := like.l.last(like.returns), like.l.renews(like.returns, false), like.l.renews(like.returns, true); a != like.last || b != like.renew || c != like.placed {
			t.Errorf("%+v after %d returns: last %t, renewed %t, with a place %t", like.l, like.returns, a, b, c)
		}
	}
}
