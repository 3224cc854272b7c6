package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/edit"
)

// usage makes what cobra says about a command line an error with a hint.
func usageError(root *cobra.Command, args []string, err error) error {
	var own *cli.UsageError
	if errors.As(err, &own) {
		return err
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return wrongValue(value)
	}
	text, rest, _ := strings.Cut(err.Error(), "\n")
	hint := "see longshore --help"
	if cmd, _, ferr := root.Find(args); ferr == nil && cmd != root {
		hint = "usage: " + cmd.UseLine()
	}
	if _, names, ok := strings.Cut(rest, "Did you mean this?"); ok {
		hint = "did you mean " + strings.Join(strings.Fields(names), " or ") + "?"
	}
	return &cli.UsageError{Text: text, Hint: hint}
}

// wrongValue says what the flag takes instead of what Go's parser said.
func wrongValue(e *pflag.InvalidValueError) error {
	f := e.GetFlag()
	is, hint := "a "+f.Value.Type(), "write it as longshore COMMAND --help shows it"
	switch f.Value.Type() {
	case "duration":
		is, hint = "a time", edit.TimeHint(e.GetValue())
	case "uint64":
		is, hint = "a whole number of 0 or more", "write for example --"+f.Name+" 10"
	case "int", "int32":
		is, hint = "a whole number", "write for example --"+f.Name+" 10"
	case "float64":
		is, hint = "a number", "write for example --"+f.Name+" 2.5"
	case "bool":
		is, hint = "true or false", "write --"+f.Name+" alone, or --"+f.Name+"=false"
	}
	return &cli.UsageError{Text: fmt.Sprintf("--%s %.64q is not %s", f.Name, e.GetValue(), is), Hint: hint}
}
