package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

const nameManagement = "name RabbitMQ's HTTP API with --management http://user:password@host:15672; amqp-server has none"

// checkRabbit looks at a queue over AMQP, which reports little, and asks the management
// API for the rest, if that is one of the same cluster.
func checkRabbit(ctx context.Context, p Patient, name string) ([]Check, error) {
	var told map[string]string
	if s, ok := p.Source.(transport.SettingsReader); ok {
		var err error
		told, err = s.Settings(ctx)
		switch {
		case errors.Is(err, longshore.CodeNotFound):
			return noQueue(p.VHost, name), nil
		case err != nil && p.From != Named: // then nothing vouches for the API
			return nil, err
		}
	}
	if p.Management == "" {
		return bare(told, "no management API URL can be derived from TARGET", nameManagement), nil
	}
	checks, err := askManagement(ctx, p, told, name)
	var stranger *strangerError
	switch {
	case err == nil:
		return checks, nil
	case p.From == Guessed, p.From == Ambient && errors.As(err, &stranger):
		return bare(told, text(err), nameManagement), nil
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
func bare(told map[string]string, why, hint string) []Check {
	var f findings
	f.add("broker", OK, "", "RabbitMQ %s, cluster %q", told["version"], told["cluster_name"])
	if told["consumers"] == "0" && told["messages"] != "0" {
		f.add("queue", Warn, "start a consumer", "%s ready and no consumer", told["messages"])
	} else {
		f.add("queue", OK, "", "%s ready, %s", told["messages"], several(told["consumers"], "consumer"))
	}
	f.add("limit", Unknown, hint, "alarms, type, limits, leases and where dead letters go were not looked at: %s", why)
	f.add("policy", Unknown, hint, "policies were not looked at: one with expires deletes retries that wait in longshore.delay.* and dead letters while no consumer is open; others drop or delay them")
	return f
}
