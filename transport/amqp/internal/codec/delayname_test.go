package codec

import (
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
)

// F-G05: rounded up, never by more than a second or 5 %, into few queues.
func TestDelaysAreRoundedUp(t *testing.T) {
	const grace = 10 * time.Minute // how much longer the queue lives, see delayqueue.go of amqp
	queues := map[string]bool{}
	for d := time.Millisecond; d < MaxDelay; d = d*101/100 + time.Millisecond {
		r := RoundDelay(d)
		if r < d || r%time.Second != 0 || r > max(d+time.Second, d*105/100+2*time.Second) {
			t.Fatalf("%s was rounded to %s", d, r)
		}
		queues[DelayQueue("q", r)] = true
	}
	if len(queues) > 60+250 {
		t.Errorf("%d delay queues for all delays", len(queues))
	}
	if ms := (RoundDelay(MaxDelay) + grace).Milliseconds(); ms >= 1<<32 {
		t.Errorf("the longest delay needs %d ms, the broker takes 32 bits", ms)
	}
}

// F-N03: the attempt of a copy is believed where the copy came out of a delay queue of
// this very queue and has been nowhere else; the broker's numbers are no attempts.
func TestAttemptIsBelievedOnItsOwnWayOnly(t *testing.T) {
	death := func(queue, reason string, count int64) any {
		return []any{amqp091.Table{"queue": queue, "reason": reason, "count": count}}
	}
	one := []any{amqp091.Table{"queue": DelayQueue("q", 2*time.Second), "reason": "expired", "count": int64(1)}}
	ours := DelayQueue("q", 2*time.Second)
	for name, c := range map[string]struct {
		headers amqp091.Table
		want    int
	}{
		"first":             {nil, 1},
		"its own way":       {amqp091.Table{headerAttempt: int32(4), "x-death": death(ours, "expired", 1)}, 4},
		"without a way":     {amqp091.Table{headerAttempt: int32(4)}, 1},
		"of another queue":  {amqp091.Table{headerAttempt: int32(4), "x-death": death(DelayQueue("p", time.Second), "expired", 1)}, 1},
		"rejected":          {amqp091.Table{headerAttempt: int32(4), "x-death": death(ours, "rejected", 1)}, 1},
		"twice":             {amqp091.Table{headerAttempt: int32(4), "x-death": death(ours, "expired", 2)}, 1},
		"no number":         {amqp091.Table{headerAttempt: "x", "x-death": death(ours, "expired", 1)}, 1},
		"negative":          {amqp091.Table{headerAttempt: int64(-1), "x-death": death(ours, "expired", 1)}, 1},
		"huge":              {amqp091.Table{headerAttempt: int64(1 << 40), "x-death": death(ours, "expired", 1)}, 1},
		"the broker's":      {amqp091.Table{"x-delivery-count": int64(7)}, 1},
		"a name like ours":  {amqp091.Table{headerAttempt: int32(4), "x-death": death(DelayStem("q")+"soon", "expired", 1)}, 1},
		"no time in it":     {amqp091.Table{headerAttempt: int32(4), "x-death": death(DelayStem("q")+"0", "expired", 1)}, 1},
		"a death too many":  {amqp091.Table{headerAttempt: int32(4), "x-death": append(one, amqp091.Table{})}, 1},
		"a death of no use": {amqp091.Table{headerAttempt: int32(4), "x-death": "expired"}, 1},
	} {
		if got := Attempt(&amqp091.Delivery{Headers: c.headers}, "q"); got != c.want {
			t.Errorf("%s: attempt %d, want %d", name, got, c.want)
		}
	}
}

// Returns are the broker's count of what has come back, and nothing on a first delivery.
func TestReturnsCountOnlyWhatCameBack(t *testing.T) {
	for _, c := range []struct {
		redelivered bool
		count       any
		want        int
	}{{true, int64(3), 3}, {false, int64(3), 0}, {true, int64(-3), 0}, {true, int64(1 << 40), 1<<31 - 1}, {true, nil, 0}} {
		raw := &amqp091.Delivery{Redelivered: c.redelivered, Headers: amqp091.Table{"x-delivery-count": c.count}}
		if got := Returns(raw); got != c.want {
			t.Errorf("%v, redelivered %v: %d returns, want %d", c.count, c.redelivered, got, c.want)
		}
	}
}

// A copy shows its handler what the original showed, carries nothing that the broker would
// act upon or count by, and its attempt only from the second on.
func TestCopyIsTheOriginalWithAnAttempt(t *testing.T) {
	raw := &amqp091.Delivery{MessageId: "1", Body: []byte("b"), Exchange: "ex", RoutingKey: "rk", Expiration: "5000", UserId: "other", ReplyTo: DirectReply,
		Headers: amqp091.Table{"a": "b", "CC": []any{"c"}, "x-death": []any{}, "x-delivery-count": int64(2), HeaderOffset: int64(1), headerAttempt: int32(9)}}
	p := Copy(raw, 3, "me")
	if p.Expiration != "" || p.UserId != "" || p.ReplyTo != "" || p.Headers["CC"] != nil || p.Headers["x-death"] != nil || p.Headers["x-delivery-count"] != nil || p.Headers[HeaderOffset] != nil {
		t.Errorf("the broker would act upon %+v", p)
	}
	d := longshore.NewDelivery(t.Context(), nil, 0)
	Decode(d, &amqp091.Delivery{MessageId: p.MessageId, Body: p.Body, Headers: p.Headers, Exchange: "", RoutingKey: "q"}, "")
	if d.Origin.Exchange != "ex" || d.Origin.RoutingKey != "rk" || d.Expiration != 5*time.Second || d.UserID != "other" || d.ReplyTo != DirectReply || d.Headers.String("a") != "b" {
		t.Errorf("the handler sees %+v of %+v", d.Message, d.Origin)
	}
	if p.Headers[headerAttempt] != int32(3) || Copy(raw, 1, "").Headers[headerAttempt] != nil || Copy(raw, 1<<40, "").Headers[headerAttempt] != int32(1<<31-1) {
		t.Errorf("attempt %v", p.Headers[headerAttempt])
	}
	if raw.Headers[headerAttempt] != int32(9) || raw.Headers["CC"] == nil {
		t.Error("the original was changed")
	}
}
