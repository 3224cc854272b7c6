package main

import (
	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/middleware/mutex"
)

func newMutex(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mutex",
		Short: "Print the tables for exactly-once effects",
		Args:  verbOf,
		RunE: func(*cobra.Command, []string) error {
			return &cli.UsageError{Text: "mutex needs a command", Hint: "use longshore mutex ddl --dialect postgres"}
		},
	}
	cmd.AddCommand(newMutexDDL(a))
	return cmd
}

// newMutexDDL prints statements and runs none: who may create tables is rarely who runs this
// command.
func newMutexDDL(a *app) *cobra.Command {
	var db database
	var dialect string
	var drop bool
	cmd := &cobra.Command{
		Use:   "ddl --dialect D",
		Short: "Print the statements that create the tables of mutex, outbox, relay and inbox",
		Long: "ddl prints the statements that create the tables. It connects to nothing and changes\n" +
			"nothing. Leave out what you do not use.",
		Example: "  longshore mutex ddl --dialect postgres | psql shop\n" +
			"  longshore mutex ddl --dialect postgres --sequence message_ids\n" +
			"  longshore mutex ddl --dialect postgres --drop",
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if dialect == "" {
				return &cli.UsageError{Text: "--dialect is missing", Hint: "use postgres, mysql (for MariaDB too) or sqlite"}
			}
			d, err := mutex.ParseDialect(dialect)
			if err != nil {
				return &cli.CodeError{Code: cli.ExitUsage, Err: err}
			}
			statements := mutex.DDL
			if drop {
				statements = mutex.DropDDL
			}
			text, err := statements(d, db.tables)
			if err != nil {
				return &cli.UsageError{Text: err.Error(), Hint: "names are made of letters, digits and _ $ #"}
			}
			if a.print.JSON {
				return a.print.Document(map[string]string{"dialect": d.String(), "ddl": text})
			}
			return a.print.Printf("%s", text)
		},
	}
	cmd.Flags().StringVar(&dialect, "dialect", "", "database: postgres, mysql (MariaDB too) or sqlite")
	db.names(cmd)
	cmd.Flags().StringVar(&db.tables.Inbox, "inbox-table", "", "inbox table (default longshore_inbox)")
	cmd.Flags().StringVar(&db.tables.Sequence, "sequence", "", "also a sequence of this name for numeric ids (mutex.SequenceID)")
	cmd.Flags().BoolVar(&drop, "drop", false, "print the statements that remove the tables and the sequence")
	return cmd
}
