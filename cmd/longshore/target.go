package main

import (
	"strconv"

	"github.com/longshore-go/longshore/transport"
)

// target turns a TARGET into its source and the name by which people know it.
func (a *app) target(raw string, counts bool) (src transport.Source, name string, err error) {
	src, err = a.source(raw, counts)
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

func quote(s string) string { return strconv.Quote(s) }
