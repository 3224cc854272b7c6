package cli

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/longshore-go/longshore"
)

// The exit codes of the command.
const (
	ExitDone         = 0 // done; for services also after a clean drain on a signal
	ExitNo           = 1 // the answer is no: mistakes found, something lost
	ExitUsage        = 2 // unknown flag, missing argument, unreadable file
	ExitDiffers      = 3 // a verification found differences
	ExitPrecondition = 4 // the precondition of a step is not met
	ExitPolicy       = 5 // stopped by policy
	ExitUnreachable  = 6 // a broker cannot be reached or refused us
	ExitConflict     = 7 // state conflict
)

// UsageError is a command line that cannot be understood.
type UsageError struct {
	Text string // the mistake
	Hint string // what to type instead
}

// CodeUsage is the code that usage errors are printed with.
const CodeUsage longshore.Code = "usage"

func (e *UsageError) Error() string { return "longshore: " + e.Text + "; " + e.Hint }

// Is makes errors.Is(err, CodeUsage) true.
func (e *UsageError) Is(target error) bool { return target == error(CodeUsage) }

// CodeError carries an exit code. With Err nil nothing is printed: the output
// said it all.
type CodeError struct {
	Code int
	Err  error
}

func (e *CodeError) Error() string {
	if e.Err == nil {
		return "longshore: failed"
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *CodeError) Unwrap() error { return e.Err }

// Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal os.Signal }

func (e *Interrupted) Error() string { return "longshore: interrupted by " + e.Signal.String() }

// ExitCode is 128 plus the number of the signal.
func (e *Interrupted) ExitCode() int {
	if n, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 128 + int(syscall.SIGINT)
}

// ExitCode returns the code that the process should end with.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	var withCode *CodeError
	if errors.As(err, &withCode) {
		return withCode.Code
	}
	var stopped *Interrupted
	if errors.As(err, &stopped) {
		return stopped.ExitCode()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ExitUnreachable
	}
	switch longshore.CodeOf(err) {
	case longshore.CodeUnreachable, longshore.CodeAuth, longshore.CodeVhost, longshore.CodeForbidden,
		longshore.CodeTLS, longshore.CodeTimeout, longshore.CodeMaybeSent, longshore.CodeConnLost, longshore.CodeBlocked:
		return ExitUnreachable
	case longshore.CodeBadAddress, longshore.CodeConfig:
		return ExitUsage
	case longshore.CodeState, longshore.CodeExclusive, longshore.CodeMismatch:
		return ExitConflict
	}
	if errors.Is(err, CodeUsage) {
		return ExitUsage
	}
	return ExitNo
}
