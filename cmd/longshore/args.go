package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/cli"
)

// withTarget wants a TARGET and takes up to most arguments in all.
func withTarget(most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := given(args, "TARGET"); err != nil {
			return err
		}
		return atMost(most)(cmd, args)
	}
}

// exactly wants these arguments and no more.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := given(args, names...); err != nil {
			return err
		}
		return atMost(len(names))(cmd, args)
	}
}

// given reports which of the arguments is not there, or is the text of a variable that
// was not set.
func given(args []string, names ...string) error {
	for i, name := range names {
		switch {
		case i >= len(args):
			return errors.New(name + " is missing")
		case args[i] == "":
			return errors.New(name + " is empty")
		}
	}
	return nil
}

// atMost takes up to most arguments.
func atMost(most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) <= most:
			return nil
		case most == 0:
			return fmt.Errorf("%s takes no arguments, and got %q", cmd.Name(), args[0])
		case most == 1:
			return fmt.Errorf("%s takes at most 1 argument, not %d", cmd.Name(), len(args))
		}
		return fmt.Errorf("%s takes at most %d arguments, not %d", cmd.Name(), most, len(args))
	}
}

// help is cobra's command, except that asking about a command that does not exist is a mistake.
func addHelp(root *cobra.Command) {
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return &cli.UsageError{Text: fmt.Sprintf("unknown command %q", strings.Join(args, " ")), Hint: "see longshore --help"}
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	})
}
