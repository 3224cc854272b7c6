package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
)

func newConfigShow(a *app) *cobra.Command {
	var file string
	var defaults bool
	cmd := &cobra.Command{
		Use:   "show [-c FILE]",
		Short: "Print the effective values and the origin of each",
		Long: "show prints the effective configuration, file and environment together, with the origin\n" +
			"of each value behind it. Secrets are ***, with the place they are read from.",
		Example: "  longshore config show\n  LONGSHORE_CONTAINERS_ORDERS_WORKERS_MAX=50 longshore config show --defaults",
		Args:    atMost(0),
		RunE:    func(*cobra.Command, []string) error { return runConfigShow(a, file, defaults) },
	}
	fileFlag(cmd, &file)
	cmd.Flags().BoolVar(&defaults, "defaults", false, "include default values")
	return cmd
}

// runConfigShow prints the effective values. Secrets are masked in config, not here, so that no other
// caller of Show can forget it.
func runConfigShow(a *app, file string, defaults bool) error {
	opts, path := a.configFile(file)
	c, r, err := a.inspect(opts, path)
	if err != nil {
		return unreadable(err)
	}
	if c == nil {
		return cannotShow(a, &r)
	}
	values := c.Show(defaults)
	if a.print.JSON {
		return a.print.Document(values)
	}
	return a.print.Printf("%s", config.Format(values))
}

// cannotShow reports the mistakes in the file; config check shows how to correct them.
func cannotShow(a *app, r *config.Report) error {
	var errs []error
	for i := range r.Problems {
		switch p := &r.Problems[i]; {
		case p.Warning:
		case a.print.JSON:
			errs = append(errs, &longshore.Error{Code: p.Code, Op: p.Where, Err: errors.New(p.Text), Hint: p.Hint})
		default:
			a.print.Notef("%s: error[%s]: %s", cli.Printable(p.Where), p.Code, cli.Printable(p.Text))
		}
	}
	errs = append(errs, &longshore.Error{Code: longshore.CodeConfig, Op: "show " + r.File, Err: errors.New(counted(r.Errors(), "mistake") + " in it"), Hint: "longshore config check shows how to correct them"})
	return &cli.CodeError{Code: cli.ExitNo, Err: errors.Join(errs...)}
}

func newConfigReference(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reference",
		Short: "Print the page about every field, in Markdown",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if a.print.JSON {
				return a.print.Document(config.FieldDocs())
			}
			return a.print.Printf("%s", config.Reference())
		},
	}
}
