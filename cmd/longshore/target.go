package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// sourceOf reads a TARGET.
func (a *app) sourceOf(target string, o urls.Options) (transport.Source, error) {
	p, err := a.place(target, o)
	return p.Source, err
}

// place is what a TARGET names: a URL, or a container of the configuration file.
func (a *app) place(target string, o urls.Options) (p config.Place, err error) {
	if isContainer(target) {
		p, err = a.ofContainer(target, o)
	} else {
		p.URL = target
		p.Source, err = o.Source(target)
	}
	if err != nil {
		return config.Place{}, err
	}
	// A memory queue has no use here: it lives and ends with this process.
	if d, ok := p.Source.(transport.Describer); ok && d.Describe().InProcess {
		return config.Place{}, &cli.CodeError{Code: cli.ExitUsage, Err: &longshore.Error{Code: longshore.CodeUnsupported, Op: "reach a mem:// queue by a command",
			Err: errors.New("it exists only inside the process that uses it"), Hint: "look at it there, for example by Browse, or use a broker"}}
	}
	return p, nil
}

// isContainer separates names, with a slash where a container has several sources, from
// addresses that lack their scheme, which may hold a password and are not to be shown.
func isContainer(target string) bool { return !strings.ContainsAny(target, ":@?%") }

// ofContainer is the place of a container of the configuration file, as the service itself reads it:
// environment, defaults and secrets included.
func (a *app) ofContainer(name string, o urls.Options) (config.Place, error) {
	opts, path := a.configFile(a.file)
	c, r, err := a.inspect(opts, path)
	switch {
	case err != nil && a.file == "" && a.env("LONGSHORE_CONFIG") == "":
		return config.Place{}, &longshore.Error{Code: longshore.CodeBadAddress, Op: "find " + quote(name),
			Err:  errors.New("not a URL, and no " + config.DefaultFile + " here with a container of that name"),
			Hint: "name the file by -c FILE or LONGSHORE_CONFIG, or write a URL: " + strings.Join(urls.Schemes(), ", ")}
	case err != nil:
		return config.Place{}, unreadable(err)
	case c == nil:
		return config.Place{}, &longshore.Error{Code: longshore.CodeConfig, Op: "find container " + quote(name),
			Err: fmt.Errorf("%s in %s", counted(r.Errors(), "mistake"), r.File), Hint: "longshore config check shows them"}
	case o.DeadLetters:
		return asUsage(c.DeadLetters(name, o))
	}
	return asUsage(c.Queue(name, o))
}

// asUsage: a name that the file does not have is a matter of the command line.
func asUsage(p config.Place, err error) (config.Place, error) {
	if errors.Is(err, config.CodeMissing) {
		err = &cli.CodeError{Code: cli.ExitUsage, Err: err}
	}
	return p, err
}

// completeTargets offers the containers of the configuration file; other TARGETs are URLs.
func (a *app) completeTargets(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		opts, path := a.configFile(a.file)
		if _, r, err := a.inspect(opts, path); err == nil {
			names = r.Containers
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// takesTarget gives a verb that has a TARGET its -c and the names of containers.
func (a *app) takesTarget(cmd *cobra.Command) *cobra.Command {
	fileFlag(cmd, &a.file)
	cmd.ValidArgsFunction = a.completeTargets
	return cmd
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
	if about.Place != "" {
		about.Kind = about.Place // the name of a group's source is its topics
	}
	name := about.Transport + " " + about.Kind + " " + quote(about.Name)
	if about.Address != "" {
		name += " at " + about.Address
	}
	return name
}

// destOf is nameOf for a destination: TARGET may be a Kafka group.
func destOf(src transport.Source, dest string) string {
	d, ok := src.(transport.Describer)
	if !ok {
		return quote(dest)
	}
	about := d.Describe()
	switch {
	case about.Place != "":
		about.Kind = about.Place
	case about.Name == dest:
		return nameOf(src)
	default: // on RabbitMQ also an exchange
		about.Kind = "destination"
	}
	return fmt.Sprintf("%s %s %q at %s", about.Transport, about.Kind, dest, about.Address)
}

func quote(s string) string { return strconv.Quote(s) }

// inspect reads the configuration file. A pipe or a slow file system may keep it waiting, so
// the first signal ends the command without waiting for it.
func (a *app) inspect(opts config.Options, path string) (*config.Config, config.Report, error) {
	type inspected struct {
		c *config.Config
		r config.Report
	}
	ctx := context.Background()
	if a.interrupts != nil {
		ctx = a.interrupts.Soft
	}
	got, err := cli.Await(ctx, func() (inspected, error) {
		c, r, err := opts.Inspect(path)
		return inspected{c, r}, err
	})
	return got.c, got.r, err
}
