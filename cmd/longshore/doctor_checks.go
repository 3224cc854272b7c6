package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/doctor"
	"github.com/longshore-go/longshore/internal/hosts"
	"github.com/longshore-go/longshore/internal/table"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// checkLine is a check in JSON.
type checkLine struct {
	Area  string `json:"area"`
	Level string `json:"level"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

func checkLines(checks []doctor.Check) []checkLine {
	lines := []checkLine{}
	for _, c := range checks {
		lines = append(lines, checkLine{Area: c.Area, Level: string(c.Level), Text: c.Text, Hint: c.Hint})
	}
	return lines
}

// anyBad decides the exit status. A warning does not count: a cron job that fails on it would be
// switched off, and miss the first loss.
func anyBad(checks []doctor.Check) bool {
	for _, c := range checks {
		if c.Level == doctor.Bad {
			return true
		}
	}
	return false
}

// checkup looks at the settings of the queue, as far as its broker reports them.
func (d *doctorCommand) checkup(ctx context.Context, target string, queue, dead transport.Source) ([]doctor.Check, error) {
	if !doctor.Checkable(queue) {
		return nil, nil
	}
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	p := doctor.Patient{Source: queue, Dead: dead, Management: d.management, From: doctor.Named, Handler: d.handler, Own: d.ownDeadLetters(target)} //nolint:contextcheck // reading a file takes no context
	if p.Management == "" {
		p.From, p.Management = doctor.Ambient, d.env("AMQP_MANAGEMENT")
	}
	if err := d.fromTarget(ctx, &p, target); err != nil {
		return nil, err
	}
	if api := asked(p); api != "" {
		d.print.Notef("asking the management API at %s", api)
		if u, err := url.Parse(api); err == nil && u.Scheme == "http" && !hosts.Loopback(u.Hostname()) {
			d.print.Notef("the login is sent there without TLS and can be read on the way; use https with --management")
		}
	}
	return doctor.Checkup(ctx, p)
}

// ownDeadLetters reports whether the file says what the container does with its dead
// letters. An exchange, or a place on another broker, cannot be looked into, but is one.
func (d *doctorCommand) ownDeadLetters(target string) bool {
	if !isContainer(target) {
		return false
	}
	opts, path := d.configFile(d.file)
	c, _, err := d.inspect(opts, path)
	return err == nil && c != nil && c.OwnDeadLetters(target)
}

// fromTarget completes what RabbitMQ's HTTP API needs: the virtual host, and where it
// is unless a flag says so. Other brokers need nothing.
func (d *doctorCommand) fromTarget(ctx context.Context, p *doctor.Patient, target string) error {
	at := config.Place{URL: target}
	if isContainer(target) {
		var err error
		if at, err = d.place(target, urls.Options{NoConsumer: true}); err != nil { //nolint:contextcheck // reading a file takes no context
			return err
		}
	}
	u, err := url.Parse(at.URL)
	if err != nil || (u.Scheme != "amqp" && u.Scheme != "amqps") {
		return nil //nolint:nilerr // the source has been made of it: it is of another broker
	}
	if p.VHost, err = url.PathUnescape(strings.TrimPrefix(u.EscapedPath(), "/")); err != nil {
		return &cli.UsageError{Text: "the virtual host in TARGET is not percent-encoded"}
	}
	if p.VHost == "" {
		p.VHost = "/"
	}
	if p.Management != "" {
		return nil
	}
	p.From = doctor.Guessed
	if api, err := url.Parse(managementBeside(u)); err == nil && api.Host != "" {
		api.User = login(ctx, u, at)
		p.Management = api.String()
	}
	return nil
}

// login is the user of a URL, completed by the configuration. A password that cannot be read is
// reported by the connection to the broker.
func login(ctx context.Context, u *url.URL, at config.Place) *url.Userinfo {
	name, user := u.User.Username(), u.User
	if at.User != "" {
		name = at.User
	}
	if password, err := at.Password.Get(ctx); err == nil && password != "" {
		user = url.UserPassword(name, password)
	}
	return user
}

// asked names the management API without user and password; "" where none is asked.
func asked(p doctor.Patient) string {
	u, err := url.Parse(p.Management)
	if p.VHost == "" || p.Management == "" || err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func (d *doctorCommand) printChecks(lines []checkLine) error {
	if len(lines) == 0 {
		return nil
	}
	t := d.print.Table(table.Column{Name: "check"}, table.Column{Name: "state", Tone: levelTone},
		table.Column{Name: "what", Min: 24, Wrap: true}, table.Column{Name: "do", Below: true})
	for _, l := range lines {
		t.Add(l.Area, l.Level, cli.Printable(l.Text), l.Hint)
	}
	return d.print.Rows(t)
}
