package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams is what a command has of the outside world. Tests fill in their own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Env looks up an environment variable.
	Env func(name string) (value string, ok bool)
	// Environ lists all of them, as os.Environ does; nil: there are none.
	Environ func() []string
	// Terminal of each stream.
	InTerminal, OutTerminal, ErrTerminal bool
	// Width of the terminal in columns; 0 = unknown.
	Width func() int
	// Signals delivers interrupts: the first ends a job cleanly, the second at once.
	Signals <-chan os.Signal
}

// System returns the streams of this process, without Signals.
func System() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Environ: os.Environ,
		InTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width: func() int {
			for _, f := range []*os.File{os.Stdout, os.Stderr} { // either may be redirected
				if w, _, err := term.GetSize(int(f.Fd())); err == nil {
					return w
				}
			}
			return 0
		},
	}
}
