// Package cli holds what all verbs of the command have in common: exit codes, the
// two-line form of errors, colours, borderless tables and signals.
//
//	streams := cli.System()
//	out := cli.NewPrinter(streams, cli.Options{Color: "auto"})
//	if err := work(); err != nil {
//		out.Failure(err) // error[not-found]: …   help: …
//		os.Exit(cli.ExitCode(err))
//	}
package cli
