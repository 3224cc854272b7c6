package main

import "github.com/spf13/cobra"

// completion adds cobra's own verb with a shorter description.
func (a *app) completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion")
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "Print the completion script for bash, fish, powershell or zsh"
		}
	}
}
