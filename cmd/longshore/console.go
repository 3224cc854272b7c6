package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/internal/gateway"
	"github.com/longshore-go/longshore/internal/hosts"
	"github.com/longshore-go/longshore/transport"
)

// console is the command of that name.
type console struct {
	app       *app
	instances instances
	addresses []string
	listen    string
	operators []string
	hosts     []string
	cert, key string // files of TLS; "": none
}

// consoleAddr is the default address of the page: the port after that of an instance.
const consoleAddr = "127.0.0.1:8392"

// newConsole keeps the tokens of the instances on this side: a browser logs in at the console,
// and its requests are forwarded with the token of the instance.
func newConsole(a *app) *cobra.Command {
	c := &console{app: a, instances: instances{app: a}}
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve one page for many instances",
		Long: "console serves the page of the admin API for all instances together: each container on each instance, totals, and where the\n" +
			"instances differ. Changes are forwarded with the operator's token of the instance, which never reaches the page.\n" +
			"It prints a link that logs one browser in as you, once and within an hour. With --operator people log in with tokens of the console.",
		Example: "  longshore console --instance shop-1:8391 --instance shop-2:8391 --token-file /run/secrets/anna\n" +
			"  longshore console -c longshore.yaml\n" +
			"  longshore console --listen 0.0.0.0:8392 --operator kim=/run/secrets/kim --host console.internal --instance https://shop-1:8391",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.instances.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&c.addresses, "instance", nil, "`address` of an admin API, host:port or a URL; repeated, or separated by commas")
	f.StringVar(&c.listen, "listen", consoleAddr, "`address` at which the page is served")
	f.StringArrayVar(&c.operators, "operator", nil, "`NAME=FILE` with the token of a person who may log in; repeatable (default: you, by a link)")
	f.StringArrayVar(&c.hosts, "host", nil, "`name` under which the page is reached, besides addresses and localhost; may be repeated")
	f.StringVar(&c.cert, "tls-cert", "", "`FILE` with the certificate of the page, for https")
	f.StringVar(&c.key, "tls-key", "", "`FILE` with its key")
	return cmd
}

// run serves until the context ends. The listener is opened before the address is printed: whoever
// reads the address can open the page at once.
func (c *console) run(ctx context.Context) error {
	targets, err := c.instances.find(c.addresses) //nolint:contextcheck // reading a file takes no context
	if err != nil {
		return err
	}
	people, err := c.people()
	if err != nil {
		return err
	}
	cert, err := c.certificate()
	if err != nil {
		return err
	}
	g := gateway.New(targets, fleet.Config{})
	a, err := admin.New(admin.Config{Addr: c.listen, Instance: "console", Around: g.Around, Operators: people, Hosts: c.hosts, TLS: cert, Logger: c.app.log})
	if err != nil {
		return err
	}
	if err := a.Start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if err := c.greet(ctx, a, len(targets)); err != nil {
		_ = a.Stop(context.WithoutCancel(ctx)) // the first error counts
		return err
	}
	<-ctx.Done()
	stop, end := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer end()
	return a.Stop(stop)
}

// certificate is that of the page; nil: it is served without TLS.
func (c *console) certificate() (*tls.Config, error) {
	switch {
	case (c.cert == "") != (c.key == ""):
		return nil, &cli.UsageError{Text: "--tls-cert and --tls-key belong together", Hint: "give both, or none"}
	case c.cert == "":
		if host, _, err := net.SplitHostPort(c.listen); err == nil && !hosts.Loopback(host) {
			c.app.print.Notef("warning: tokens reach the page without TLS: anyone on the way can read them; add --tls-cert and --tls-key, or a proxy that has TLS")
		}
		return nil, nil //nolint:nilnil // no certificate is no error
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, &cli.UsageError{Text: "the certificate cannot be used: " + err.Error(), Hint: "check --tls-cert and --tls-key"}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// greet prints where the page is.
func (c *console) greet(ctx context.Context, a *admin.Server, n int) error {
	page := "http://" + a.Addr() + "/"
	if c.cert != "" {
		page = "https://" + a.Addr() + "/"
	}
	link := ""
	if len(c.operators) == 0 {
		link = a.Link(ctx)
	}
	if c.app.print.JSON {
		return c.app.print.Line(map[string]any{"page": page, "login": link, "instances": n})
	}
	if link == "" {
		return c.app.print.Printf("console of %s: %s\n", counted(n, "instance"), page)
	}
	return c.app.print.Printf("console of %s: %s\n", counted(n, "instance"), link)
}

// people are those who may log in: those of --operator, else the user by a link.
func (c *console) people() (map[string]transport.Secret, error) {
	if host, _, err := net.SplitHostPort(c.listen); len(c.operators) == 0 && err == nil && !hosts.Loopback(host) {
		return nil, &cli.UsageError{Text: "--listen " + c.listen + " can be reached from other hosts, and no token is configured for it", Hint: "add --operator NAME=FILE, or listen on " + consoleAddr}
	}
	if len(c.operators) == 0 {
		name := "local"
		if u, err := user.Current(); err == nil && u.Username != "" {
			name = u.Username
		}
		return map[string]transport.Secret{name: transport.Static(rand.Text())}, nil
	}
	people := map[string]transport.Secret{}
	for _, text := range c.operators {
		name, file, ok := strings.Cut(text, "=")
		if !ok || name == "" || file == "" {
			return nil, &cli.UsageError{Text: "--operator " + text + " is not NAME=FILE", Hint: "write for example --operator kim=/run/secrets/kim"}
		}
		people[name] = transport.File(file)
	}
	return people, nil
}
