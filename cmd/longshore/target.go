package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// sourceOf reads a source URL. A memory queue has no use here: it lives and ends
// with this process.
func sourceOf(target string, o urls.Options) (transport.Source, error) {
	if strings.HasPrefix(strings.ToLower(target), "mem://") {
		return nil, &cli.CodeError{Code: cli.ExitUsage, Err: &longshore.Error{Code: longshore.CodeUnsupported, Op: "reach a mem:// queue by a command",
			Err: errors.New("it lives inside the process that uses it"), Hint: "look at it there, for example by Browse, or use a broker"}}
	}
	return o.Source(target)
}

// target turns a TARGET into its source and the name by which people know it.
func (a *app) target(raw string, o urls.Options) (src transport.Source, name string, err error) {
	src, err = a.source(raw, o)
	if err != nil {
		return nil, "", err
	}
	if c, ok := src.(transport.Checker); ok {
		if err := c.Check(); err != nil {
			return nil, "", err
		}
	}
	return src, nameOf(src), nil
}

// nameOf is for example `rabbitmq queue "orders" at host:5672`.
func nameOf(src transport.Source) string {
	d, ok := src.(transport.Describer)
	if !ok {
		return "the source"
	}
	about := d.Describe()
	name := about.Transport + " " + about.Kind + " " + quote(about.Name)
	if about.Address != "" {
		name += " at " + about.Address
	}
	return name
}

// destOf is nameOf for what is published to: TARGET may be a Kafka group.
func destOf(src transport.Source, dest string) string {
	d, ok := src.(transport.Describer)
	if !ok {
		return quote(dest)
	}
	about := d.Describe()
	switch {
	case about.Transport == "kafka":
		about.Kind = "topic"
	case about.Name == dest:
		return nameOf(src)
	default: // on RabbitMQ also an exchange
		about.Kind = "destination"
	}
	return fmt.Sprintf("%s %s %q at %s", about.Transport, about.Kind, dest, about.Address)
}

func quote(s string) string { return strconv.Quote(s) }
