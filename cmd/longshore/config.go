package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
)

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config check|show|reference",
		Short: "Check longshore.yaml, show the effective values, list all fields",
		Args:  verbOf,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &cli.UsageError{Text: "config needs a command", Hint: "longshore config check, show or reference"}
		},
	}
	cmd.AddCommand(newConfigCheck(a), newConfigShow(a), newConfigReference(a))
	return cmd
}

func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "config", "c", "", "`file` to read (default $LONGSHORE_CONFIG, else ./"+config.DefaultFile+")")
}

// newConfigCheck builds everything without I/O, so that it can run in a pipeline that reaches no
// broker.
func newConfigCheck(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check [-c FILE]",
		Short: "Find all mistakes in a configuration, without contacting a broker",
		Long: "check reads the file and the environment like a service does and reports every mistake with its line.\n" +
			"Missing secrets are warnings: the service may run elsewhere. It prints how long a drain may take\n" +
			"and the grace period that the process needs. Exit code 1: there are mistakes.",
		Example: "  longshore config check\n  longshore config check -c deploy/longshore.yaml --json",
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			opts, path := a.configFile(file)
			_, r, err := a.inspect(opts, path)
			if err != nil {
				return unreadable(err)
			}
			return showReport(a, &r)
		},
	}
	fileFlag(cmd, &file)
	return cmd
}

// configFile follows the flag, then the variable, then the default.
func (a *app) configFile(flag string) (o config.Options, path string) {
	o.Environ = []string{}
	if a.streams.Environ != nil {
		o.Environ = append(o.Environ, a.streams.Environ()...)
	}
	if flag != "" {
		return o, flag
	}
	if v := a.env("LONGSHORE_CONFIG"); v != "" {
		return o, v
	}
	return o, config.DefaultFile
}

// unreadable: a file that cannot be read is a matter of the command line.
func unreadable(err error) error {
	var e *longshore.Error
	if errors.As(err, &e) {
		return &cli.UsageError{Text: e.Text(), Hint: "name the file: -c FILE, or LONGSHORE_CONFIG; longshore config reference has an example"}
	}
	return err
}
