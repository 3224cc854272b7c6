package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/cli"
)

// completion adds cobra's own verb with a shorter description. Without a shell
// that it knows cobra would print the help and exit with 0, which a script that
// sources the output takes for a completion.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion")
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "Print the completion script for bash, fish, powershell or zsh"
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(cmd *cobra.Command, args []string) error {
				text := "SHELL is missing"
				if len(args) > 0 {
					text = fmt.Sprintf("no completion for %q", args[0])
				}
				return &cli.UsageError{Text: text, Hint: "write longshore completion bash, fish, powershell or zsh"}
			}
		}
	}
}
