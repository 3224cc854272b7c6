// Command longshore shows, publishes, looks at and explains what a service built
// on Longshore does.
//
//	longshore demo                 # see it work, nothing to install
//	longshore explain not-found    # what an error code means and what to do
//	longshore peek 'amqp://guest:guest@localhost/?queue=orders' -n 5
//
// docs/reference/cli.md describes every command, flag and exit status.
//
// Reading order: main.go has the signals, root.go the table of commands and what every run
// begins with, target.go turns TARGET into a source. Then one file for each command; ctl, dlq,
// doctor and bridge have one for each of their parts. prompt.go, progress.go, tones.go and
// messages.go are what several of them print with. Streams, exit codes and errors are in
// internal/cli, the work itself in internal/dlq, internal/doctor, internal/inspect and the
// like: a command here reads flags, calls one function and prints the answer.
package main
