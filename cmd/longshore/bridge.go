package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/bridge/workflow"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
)

// bridgeCommand is `longshore bridge`: the flags that its verbs share, and what they open.
type bridgeCommand struct {
	*app

	file   string   // of -c
	yes    bool     // do not ask
	accept []string // findings that are accepted, besides those of the file
}

const bridgeHelp = `bridge moves a live service from one broker to another: consumers first, producers last.
Begin with check, then cutover; remaining, verify and finish end the move, rollback undoes it.
ROUTE is a route of bridge.yaml, or of the section bridge of longshore.yaml; with one route it may be left out.`

func newBridge(a *app) *cobra.Command {
	b := &bridgeCommand{app: a}
	cmd := &cobra.Command{
		Use:   "bridge COMMAND [ROUTE]",
		Short: "Move a live service from one broker to another and prove that nothing was lost",
		Long:  bridgeHelp,
		Args:  verbOf,
		RunE: func(*cobra.Command, []string) error {
			return &cli.UsageError{Text: "bridge needs a command", Hint: "longshore bridge check, cutover, remaining, verify, rollback, finish, run, mirror or unpark"}
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(b.check(), b.mirror(), b.runVerb(), b.cutover(), b.remaining(), b.verify(), b.unpark(), b.rollback(), b.finish())
	for _, verb := range cmd.Commands() {
		verb.Flags().StringVarP(&b.file, "config", "c", "", "`FILE` to read (default ./"+config.BridgeFile+", else $LONGSHORE_CONFIG or ./"+config.DefaultFile+")")
		verb.ValidArgsFunction = b.completeRoutes
	}
	return cmd
}

// verb makes one of the verbs.
func (b *bridgeCommand) verb(use, short, long string, run func(ctx context.Context, r *config.Route) error) *cobra.Command {
	return &cobra.Command{Use: use + " [ROUTE]", Short: short, Long: long, Example: "  longshore bridge " + use + " orders", Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := b.route(args)
			if err != nil {
				return err
			}
			return exitOf(run(cmd.Context(), &r))
		}}
}

// exitOf gives errors of the bridge their exit codes.
func exitOf(err error) error {
	if _, own := errors.AsType[*cli.CodeError](err); own || err == nil {
		return err
	}
	if _, is := errors.AsType[*workflow.PreconditionError](err); is {
		return &cli.CodeError{Code: cli.ExitPrecondition, Err: err}
	}
	if why, is := errors.AsType[*bridge.StoppedError](err); is {
		if why.Reason.Precondition() {
			return &cli.CodeError{Code: cli.ExitPrecondition, Err: err}
		}
		return &cli.CodeError{Code: cli.ExitPolicy, Err: err}
	}
	return err
}

// load reads the file.
func (b *bridgeCommand) load() (*config.Config, error) {
	opts, path := b.configFile(b.file)
	if _, err := os.Stat(config.BridgeFile); b.file == "" && err == nil {
		path = config.BridgeFile
	}
	c, r, err := b.inspect(opts, path)
	if err != nil {
		return nil, unreadable(err)
	}
	if c == nil {
		return nil, &cli.CodeError{Code: cli.ExitNo, Err: &longshore.Error{Code: longshore.CodeConfig, Op: "read the routes of the bridge",
			Err: fmt.Errorf("%s in %s", counted(r.Errors(), "mistake"), r.File), Hint: "longshore config check -c " + r.File + " shows them"}}
	}
	return c, nil
}

// route is the one that is named, or the only one.
func (b *bridgeCommand) route(args []string) (config.Route, error) {
	c, err := b.load()
	if err != nil {
		return config.Route{}, err
	}
	names := c.Routes()
	switch {
	case len(args) == 1:
		r, err := c.Route(args[0])
		if errors.Is(err, config.CodeMissing) {
			err = &cli.CodeError{Code: cli.ExitUsage, Err: err}
		}
		return r, err
	case len(names) == 1:
		return c.Route(names[0])
	case len(names) == 0:
		return config.Route{}, &cli.UsageError{Text: "the file has no routes", Hint: "write a section bridge; longshore config reference has its fields"}
	}
	return config.Route{}, &cli.UsageError{Text: "ROUTE is missing", Hint: "the routes are " + strings.Join(names, ", ")}
}

// completeRoutes offers the routes of the file.
func (b *bridgeCommand) completeRoutes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if c, err := b.load(); err == nil && len(args) == 0 {
		return c.Routes(), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// settings are those of the route's way forth.
func (b *bridgeCommand) settings(r *config.Route) bridge.Config {
	cfg := bridge.Config{Name: r.Name, From: r.From, To: r.To, Identity: r.Identity, Park: r.Park, OnUnsendable: r.OnUnsendable, Rate: r.Rate, Container: r.Container}
	cfg.Container.Logger = b.routeLog()
	return cfg
}

// routeLog is silent unless asked: the verbs print what matters themselves.
func (b *bridgeCommand) routeLog() *zap.Logger {
	if b.options.Verbose {
		return b.log
	}
	return zap.NewNop()
}

// ends are both sides of a route, for a move.
func (b *bridgeCommand) ends(r *config.Route) *workflow.Sides {
	ends := workflow.Route{Config: b.settings(r), Ledger: r.Ledger, LettersFrom: r.LettersFrom, LettersTo: r.LettersTo, Parked: r.Parked, Declare: r.Declare, Spare: r.Spare, Lock: r.Lock}
	if r.Seed != nil {
		ends.Seed = r.Seed
	}
	return workflow.NewEnds(ends)
}

// again is the command line of another verb for the same route.
func (b *bridgeCommand) again(verb string, r *config.Route) string {
	line := "longshore bridge " + verb + " " + r.Name
	if b.file != "" {
		line += " -c " + b.file
	}
	return line
}
