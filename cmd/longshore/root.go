package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// app is one run of the command.
type app struct {
	streams    cli.Streams
	options    cli.Options
	timeout    time.Duration
	print      *cli.Printer
	interrupts *cli.Interrupts
	out        *cli.Outlet // stdout
	terminal   *os.File    // behind stdout, for a program that draws on it; nil: there is none
	reached    bool        // the command line was understood
	log        *zap.Logger // of -v, else nowhere
	// source turns a TARGET into a source.
	source func(target string, o urls.Options) (transport.Source, error)
	file   string // of -c
}

// run executes a command line and returns the exit code.
func run(args []string, s cli.Streams) int {
	a := &app{streams: s}
	return a.run(args)
}

// run decides twice how to print: before the flags are known, for mistakes in the flags themselves, and
// again once they are.
func (a *app) run(args []string) int {
	if a.source == nil {
		a.source = a.sourceOf
	}
	a.interrupts = cli.Watch(a.streams.Signals)
	defer a.interrupts.Stop()
	a.terminal = terminalOf(a.streams.Out)
	a.out = a.interrupts.Outlet(a.streams.Out)
	a.streams.Out, a.streams.Err = a.out, a.interrupts.Outlet(a.streams.Err)
	a.print = cli.NewPrinter(a.streams, cli.Options{Color: "auto"})
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(a.interrupts.Soft)
	if err != nil && !a.reached {
		err = usageError(root, args, err)
		// Of a verb that does not exist no flag is read.
		a.options.JSON = a.options.JSON || slices.Contains(args, "--json")
		a.print = cli.NewPrinter(a.streams, a.options) // as far as the flags were read
	}
	err = a.verdict(err)
	a.print.Failure(err)
	return cli.ExitCode(err)
}

// verdict is what a verb's error comes to where a signal, or a reader that went away,
// ended it.
func (a *app) verdict(err error) error {
	cause := a.interrupts.Cause()
	if errors.Is(err, context.Canceled) && cause != nil {
		return cause
	}
	if err = cli.WithoutGone(err); err == nil && a.out.Gone() {
		return cause
	}
	return err
}

// root builds a new tree of commands for each run; cobra keeps the values of flags in it.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "longshore",
		Short:         "Consume from RabbitMQ, Kafka and SQS through one listener container",
		Long:          "longshore publishes, shows and explains the messages of a service built on Longshore, and operates the service.\nTARGET is a source URL: amqp://user@host/vhost?queue=NAME,\nkafka://host:port/topic?group=NAME or sqs://NAME?region=REGION;\nor the name of a container in longshore.yaml (-c names another file)",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(a.streams.In)
	root.SetOut(unbroken{a.out})
	root.SetErr(a.streams.Err)
	f := root.PersistentFlags()
	f.BoolVar(&a.options.JSON, "json", false, "print JSON: one document, or one object per line for streams")
	f.BoolVarP(&a.options.Quiet, "quiet", "q", false, "print only the result and errors")
	f.BoolVarP(&a.options.Verbose, "verbose", "v", false, "print a debug log on stderr")
	f.StringVar(&a.options.Color, "color", "auto", "use colours: auto, always or never")
	f.DurationVar(&a.timeout, "timeout", 30*time.Second, "how long to wait for the broker's response")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.prepare() }
	for _, c := range commands() {
		cmd := c.build(a)
		if c.target {
			a.takesTarget(cmd)
		}
		root.AddCommand(cmd)
	}
	addCompletion(root)
	addHelp(root)
	return root
}

// command is a row of the table of top-level commands.
type command struct {
	build  func(*app) *cobra.Command
	target bool // the first argument is a TARGET: the command gets -c and completion of containers
}

// commands returns the top-level commands; --help sorts them by name.
func commands() []command {
	return []command{
		{build: newDemo},
		{build: newPublish, target: true},
		{build: newPeek, target: true},
		{build: newTail, target: true},
		{build: newDoctor, target: true},
		{build: newDLQ},
		{build: newBridge},
		{build: newCtl},
		{build: newTop},
		{build: newConsole},
		{build: newConfig},
		{build: newExplain},
		{build: newMutex},
		{build: newRelay, target: true},
		{build: newAMQPServer},
		{build: newSQSServer},
		{build: newVersion},
	}
}

// unbroken is for what cobra prints itself: it would report a reader that went away.
type unbroken struct{ io.Writer }

func (u unbroken) Write(p []byte) (int, error) {
	_, _ = u.Writer.Write(p) // verdict asks
	return len(p), nil
}

// prepare checks the flags that all verbs have.
func (a *app) prepare() error {
	switch a.options.Color {
	case "auto", "always", "never":
	default:
		return &cli.UsageError{Text: "--color " + a.options.Color + " is not known", Hint: "use auto, always or never"}
	}
	if a.timeout <= 0 {
		return &cli.UsageError{Text: "--timeout must be more than 0", Hint: "write for example --timeout 30s"}
	}
	if a.options.Quiet && a.options.Verbose {
		return &cli.UsageError{Text: "-q and -v exclude each other", Hint: "give one of them"}
	}
	a.print = cli.NewPrinter(a.streams, a.options)
	a.log = zap.NewNop()
	if a.options.Verbose {
		a.log = a.debugLog()
	}
	a.reached = true
	return nil
}

// env is a variable of the environment; "": it is not set.
func (a *app) env(name string) string {
	if a.streams.Env == nil {
		return ""
	}
	v, _ := a.streams.Env(name)
	return v
}

// debugLog writes to Err, a line for each entry.
func (a *app) debugLog() *zap.Logger {
	enc := zap.NewDevelopmentEncoderConfig()
	enc.EncodeCaller = nil
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(enc), zapcore.AddSync(a.streams.Err), zapcore.DebugLevel))
}

// bounded is ctx with --timeout.
func (a *app) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, a.timeout)
}
