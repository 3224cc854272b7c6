package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// DefaultFile is read where no file is named, by Load and by the command, and neither
// is one in the variable LONGSHORE_CONFIG.
const DefaultFile = "longshore.yaml"

// Options are where a configuration comes from besides its file. The zero value is the
// process's environment.
type Options struct {
	// Environ is the environment, as os.Environ has it. nil: the process's.
	Environ []string
	// Memory is the broker of mem:// URLs. nil: one of the configuration's own, which
	// all its containers share.
	Memory *memory.Broker
}

// Config is a configuration that was read and found to be without mistakes. It is safe
// for concurrent use.
type Config struct {
	loader   *loader         // the file, decoded, and the places of its keys
	warnings []Problem       // mistakes that do not keep it from working
	sources  *sources        // makes the sources that the file describes
	meters   *meters         // nil without a telemetry section
	vias     map[string]*via // brokers that dead letters of others go to
	stop     time.Duration   // bounds the stop of the whole process
	slowest  time.Duration   // drain of a container, which the bound has to leave room for
}

// Format prints the file's name for every verb: what was loaded holds secrets, and the
// environment.
func (c Config) Format(f fmt.State, _ rune) {
	if c.loader == nil {
		_, _ = io.WriteString(f, "configuration")
		return
	}
	_, _ = io.WriteString(f, "configuration "+c.loader.name)
}

// Format prints no environment for any verb.
func (o Options) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "options with %d environment variables", len(o.Environ))
}

// Load reads a file; "" is the one in LONGSHORE_CONFIG, else longshore.yaml. Values in
// the environment win over it: LONGSHORE_CONTAINERS_ORDERS_WORKERS_MAX=50.
//
// The error joins everything that is wrong, each a *[Problem] with file, line and
// column. No broker is contacted.
func Load(path string) (*Config, error) { return Options{}.Load(path) }

// Load is like the function of that name.
func (o Options) Load(path string) (*Config, error) {
	c, problems, err := o.open(path, false)
	return c, errors.Join(append(fatal(problems), err)...)
}

// Parse is like Load for a text; name stands for the file in problems, and what is
// relative to the file is relative to it.
func (o Options) Parse(name string, text []byte) (*Config, error) {
	c, problems := o.parse(name, text, false)
	return c, errors.Join(fatal(problems)...)
}

// Report is what Check found.
type Report struct {
	File     string    `json:"file"`
	Problems []Problem `json:"problems"`
	// Drain is how long the slowest container may take to stop, StopTimeout bounds the
	// stop of the whole process, Grace is what the process needs from a signal to the
	// kill at the least. All are zero if there are mistakes.
	Drain       time.Duration `json:"-"`
	StopTimeout time.Duration `json:"-"`
	Grace       time.Duration `json:"-"`
	// Containers by name, in the order of the file.
	Containers []string `json:"containers"`
	// Routes of the bridge, by name.
	Routes []string `json:"routes,omitempty"`
}

// Errors and Warnings count the problems.
func (r *Report) Errors() int { return len(fatal(r.Problems)) }

// Warnings counts what works and is a mistake anyway.
func (r *Report) Warnings() int { return len(r.Problems) - r.Errors() }

// Check looks for mistakes like Load, also on a machine on which the service does not
// run: a secret that is not there is a warning. The error is about a file that cannot
// be read.
func (o Options) Check(path string) (Report, error) {
	_, r, err := o.Inspect(path)
	return r, err
}

// Inspect is Check, and gives the configuration too, to show it; nil if there are
// mistakes.
func (o Options) Inspect(path string) (*Config, Report, error) {
	c, problems, err := o.open(path, true)
	r := Report{File: pathOf(path), Problems: problems}
	if c != nil {
		r.Containers, r.Routes = c.Names(), c.Routes()
		r.StopTimeout, r.Drain, r.Grace = c.stop, c.slowest, c.stop+graceReserve
	}
	return c, r, err
}

// pathOf is the file to read: the argument, else LONGSHORE_CONFIG, else the file in the working directory.
func pathOf(path string) string {
	if path == "" {
		path = os.Getenv("LONGSHORE_CONFIG")
	}
	if path == "" {
		path = DefaultFile
	}
	return path
}

// open reads a file. check says that it is only looked at, so that a secret which is missing here is
// a warning.
func (o Options) open(path string, check bool) (*Config, []Problem, error) {
	path = pathOf(path)
	text, err := readBounded(path)
	if err != nil {
		hint := "name the file: config.Load(path), longshore -c FILE, or LONGSHORE_CONFIG"
		return nil, nil, &longshore.Error{Code: longshore.CodeConfig, Op: "read the configuration " + path, Err: plain(err), Hint: hint}
	}
	c, problems := o.parse(path, text, check)
	return c, problems, nil
}

// readBounded reads a little more than the largest file, so that a device or a pipe without
// end is refused like any file that is too large.
func readBounded(path string) (text []byte, err error) {
	f, err := os.Open(path) //nolint:gosec // the user's own file
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// plain leaves out the path of a PathError, which the operation names already.
func plain(err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// parse reads everything before it gives up, so that one run reports every mistake.
func (o Options) parse(name string, text []byte, check bool) (*Config, []Problem) {
	l := newLoader(o, name, check)
	if !l.read(text) {
		return nil, l.finish()
	}
	shared := o.Memory
	if shared == nil {
		shared = memory.New(memory.Config{})
	}
	c := &Config{loader: l, vias: map[string]*via{}, sources: &sources{l.file.Brokers, map[string]broker{}, shared, l.surroundings}}
	(&trial{l, c, map[string][]error{}}).try()
	problems := l.finish()
	if len(fatal(problems)) > 0 {
		return nil, problems
	}
	c.warnings = problems
	return c, problems
}

// Names are the containers in the order of the file. One with several sources is a container
// for each: CONTAINER/SOURCE.
func (c *Config) Names() []string {
	var names []string
	for _, name := range c.loader.order {
		names = append(names, c.loader.file.Containers[name].members(name)...)
	}
	return names
}

// Warnings are what works and is a mistake anyway, such as a password that is
// written into the file.
func (c *Config) Warnings() []Problem { return slices.Clone(c.warnings) }

// Lifecycle bounds the stop: for lifecycle.New and lifecyclefx.Module. Where the file has no
// stop_timeout, the time of components that the file does not know is added to it.
func (c *Config) Lifecycle() lifecycle.Config {
	return lifecycle.Config{StopTimeout: c.stop, Grow: c.loader.file.Lifecycle.StopTimeout == 0, Setting: "lifecycle.stop_timeout"}
}

// Source is what a container consumes. A transport.Outlet of it publishes there.
func (c *Config) Source(name string) (transport.Source, error) {
	s, err := c.find(name)
	if err != nil {
		return nil, err
	}
	return c.sources.source(s.Source)
}

// mostNamed is how many containers an error names.
const mostNamed = 10

// noContainer is the error about a name that the file does not have, with the nearest one that it has.
func (c *Config) noContainer(name string) error {
	e := &longshore.Error{Code: CodeMissing, Op: "configuration " + c.loader.name, Source: name,
		Err: fmt.Errorf("no container named %q", name), Hint: "add it below containers"}
	known := c.Names()
	if len(known) > 0 {
		e.Hint += ", which has " + strings.Join(known[:min(len(known), mostNamed)], ", ")
		if len(known) > mostNamed {
			e.Hint += fmt.Sprintf(" and %d more", len(known)-mostNamed)
		}
	}
	if near := closest(name, known); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}
