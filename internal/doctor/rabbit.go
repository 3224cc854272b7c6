package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

const nameManagement = "name RabbitMQ's HTTP API with --management http://user:password@host:15672; amqp-server has none"

// checkRabbit looks at a queue over AMQP, which reports little, and queries the management
// API of the same cluster for the rest.
func checkRabbit(ctx context.Context, p Patient, name string) ([]Check, error) {
	var live map[string]string
	if s, ok := p.Source.(transport.SettingsReader); ok {
		var err error
		live, err = s.Settings(ctx)
		switch {
		case errors.Is(err, longshore.CodeNotFound):
			return noQueue(p.VHost, name), nil
		case err != nil && p.From != Named: // then nothing vouches for the API
			return nil, err
		}
	}
	if p.Management == "" {
		return bare(live, "no management API URL can be derived from TARGET", nameManagement), nil
	}
	checks, err := askManagement(ctx, p, live, name)
	var stranger *strangerError
	switch {
	case err == nil:
		return checks, nil
	case p.From == Guessed, p.From == Ambient && errors.As(err, &stranger):
		return bare(live, text(err), nameManagement), nil
	case errors.As(err, &stranger):
		return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "ask RabbitMQ's management API", Err: err, Hint: "name that of TARGET's broker with --management"}
	}
	return nil, err
}

// strangerError is the answer of another broker.
type strangerError struct{ host, have, want string }

func (e *strangerError) Error() string {
	return fmt.Sprintf("the one at %s is of cluster %q, and TARGET is in cluster %q", e.host, e.have, e.want)
}

// text is an error without its hint: the check has its own.
func text(err error) string {
	var e *longshore.Error
	if errors.As(err, &e) {
		return e.Text()
	}
	return err.Error()
}

// noQueue is all that is to be said about a queue that does not exist.
func noQueue(vhost, name string) []Check {
	return []Check{{Area: "queue", Level: Bad, Text: fmt.Sprintf("no queue %q in virtual host %q", name, vhost), Hint: "declare it, or check the name"}}
}

// bare is what AMQP reports, and why there is no more.
func bare(live map[string]string, why, hint string) []Check {
	var f findings
	f.add("broker", OK, "", "RabbitMQ %s, cluster %q", live["version"], live["cluster_name"])
	if live["consumers"] == "0" && live["messages"] != "0" {
		f.add("queue", Warn, "start a consumer", "%s ready and no consumer", live["messages"])
	} else {
		f.add("queue", OK, "", "%s ready, %s", live["messages"], several(live["consumers"], "consumer"))
	}
	f.add("limit", Unknown, hint, "alarms, type, limits, leases and where dead letters go were not looked at: %s", why)
	f.add("policy", Unknown, hint, "policies were not looked at: one with expires deletes retries that wait in longshore.delay.* and dead letters while no consumer is open; others drop or delay them")
	return f
}
