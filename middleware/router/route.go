package router

import (
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
)

// Route is a handler and what it is for; the functions of this package make them.
type Route struct {
	name    string // for errors
	typ     string // routes by type are found by it
	match   func(*longshore.Delivery) bool
	handler longshore.Handler
	problem error
}

// Type takes messages of exactly this type.
func Type(name string, h longshore.Handler) Route {
	r := Route{name: fmt.Sprintf("type %q", name), typ: name, handler: h}
	if name == "" {
		r.problem = errors.New("the type is empty; for messages without one use When, or Config.Unmatched")
	}
	return r
}

// Topic takes messages from topics or queues whose names match a pattern: words
// between dots, "*" for one word, "#" for any number.
func Topic(pattern string, h longshore.Handler) Route {
	return byPattern("topic", pattern, h, func(d *longshore.Delivery) string { return d.Origin.Topic })
}

// RoutingKey takes messages whose routing key matches a pattern as RabbitMQ's topic
// exchanges have them: words between dots, "*" for one word, "#" for any number.
func RoutingKey(pattern string, h longshore.Handler) Route {
	return byPattern("routing key", pattern, h, func(d *longshore.Delivery) string { return d.Origin.RoutingKey })
}

// When takes messages for which match is true. It is called by many workers at once;
// name is for errors.
func When(name string, match func(*longshore.Delivery) bool, h longshore.Handler) Route {
	r := Route{name: name, match: match, handler: h}
	if match == nil {
		r.problem = errors.New("the function is nil")
	}
	return r
}

func byPattern(what, text string, h longshore.Handler, of func(*longshore.Delivery) string) Route {
	p, err := parsePattern(text)
	return Route{name: fmt.Sprintf("%s %q", what, text), handler: h, problem: err,
		match: func(d *longshore.Delivery) bool { return p.match(of(d)) }}
}
