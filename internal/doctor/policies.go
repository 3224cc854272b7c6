package doctor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/longshore-go/longshore/internal/rabbitapi"
	"github.com/longshore-go/longshore/transport"
)

// definition is what policies say of a queue. Where there is none, some versions send an
// empty list.
type definition map[string]any

// UnmarshalJSON takes what is no object for an empty one.
func (d *definition) UnmarshalJSON(b []byte) error {
	var m map[string]any
	if json.Unmarshal(b, &m) == nil {
		*d = m
	}
	return nil
}

// policies looks at what policies do to the queue, to the container's dead-letter queue,
// and to the delay queues that retries of the queue wait in. It completes q.Policy, which
// the broker reports some seconds late.
func (m *management) policies(ctx context.Context, p Patient, name string, q *rabbitQueue) ([]Check, error) {
	var policies, operator []rabbitapi.Policy
	_, err := m.get(ctx, &policies, "policies", p.VHost)
	if err == nil {
		_, err = m.get(ctx, &operator, "operator-policies", p.VHost)
	}
	var f findings
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		f.addAll(rabbitapi.Judge(rabbitapi.Source, name, q.Policy))
		f.add("policy", Unknown, "use a login with the tag policymaker", "policies could not be read, so what they do to dead letters and to retries that wait was not looked at: %s", text(err))
		return f, nil
	}
	q.Policy = rabbitapi.Effective(policies, operator, name, q.Type)
	before := len(f)
	f.addAll(rabbitapi.Judge(rabbitapi.Source, name, q.Policy))
	if dead := nameOnRabbit(p.Dead); dead != "" && dead != name {
		kind := "classic"
		if dq, err := m.queue(ctx, p.VHost, dead); err == nil && dq != nil {
			kind = dq.Type
		}
		f.addAll(rabbitapi.Judge(rabbitapi.DeadLetter, dead, rabbitapi.Effective(policies, operator, dead, kind)))
	}
	delay := fmt.Sprintf("longshore.delay.%s.1000", name)
	f.addAll(rabbitapi.Judge(rabbitapi.Delay, delay, rabbitapi.Effective(policies, operator, delay, "classic")))
	if len(f) == before {
		f.add("policy", OK, "", "no policy deletes, drops or delays messages of this queue")
	}
	return f, nil
}

func (f *findings) addAll(found []rabbitapi.Finding) {
	for _, x := range found {
		level := Warn
		if x.Lost {
			level = Bad
		}
		f.add("policy", level, x.Hint, "%s", x.Text)
	}
}

// nameOnRabbit is the name of a source that is a queue on RabbitMQ; "" for any other.
func nameOnRabbit(src transport.Source) string {
	s, ok := src.(transport.SettingsReader)
	d, described := src.(transport.Describer)
	if !ok || !described || s.Vocabulary() != transport.VocabularyRabbitMQ {
		return ""
	}
	return d.Describe().Name
}
