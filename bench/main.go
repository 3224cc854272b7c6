package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// fullRounds is what the bars are meant for.
const fullRounds = 8

// options of a run, shared by the cases.
type options struct {
	rounds int
	scale  float64 // of the message counts
}

func (o options) count(n int) int { return max(100, int(float64(n)*o.scale)) }

type benchCase struct {
	name  string
	needs string // environment variable, "" = nothing
	run   func(o options, r *report) error
}

// cases lists all; a name before a slash stands for all that begin with it.
func cases() []benchCase {
	cs := []benchCase{
		{"hot", "", hotPath},
		{"poison", "", poison},
		{"drain", "", drain},
		{"inflight", "", inFlight},
		{"telemetry", "", observed},
		{"scale", "", scale},
		{"rabbit", "AMQP_URL", rabbit},
	}
	return slices.Concat(cs, kafkaCases("kafka", "KAFKA_ADDRS", kafkaGiven), kafkaCases("kafka-fake", "", kafkaEmbedded), sqsCases(), publishCases(), latencyCases(), startCases(), bridgeCases(), jvmCases())
}

// chosen tells whether a case is to run. Those on kfake are not, unless asked for:
// what runs without a list is on the real broker where there is one. Nor is scale,
// which has a page of its own.
func chosen(name, only string) bool {
	group, _, _ := strings.Cut(name, "/")
	if only == "" {
		return group != "kafka-fake" && group != "scale"
	}
	asked := strings.Split(only, ",")
	return slices.Contains(asked, name) || slices.Contains(asked, group)
}

// refuse says what is wrong with what was asked for: a case that there is not, or one
// whose broker is not given, would otherwise end as if all had been measured and held.
func (o options) refuse(only string, getenv func(string) string) error {
	var errs []error
	if o.rounds < 1 {
		errs = append(errs, fmt.Errorf("-rounds %d: at least one is needed", o.rounds))
	}
	if !(o.scale > 0) { // not a number, too
		errs = append(errs, fmt.Errorf("-scale %g: it is a factor above 0", o.scale))
	}
	if only == "" {
		return errors.Join(errs...)
	}
	for _, asked := range strings.Split(only, ",") {
		found := false
		for _, c := range cases() {
			if !chosen(c.name, asked) || asked == "" {
				continue
			}
			if found = true; c.needs != "" && getenv(c.needs) == "" {
				errs = append(errs, fmt.Errorf("case %s needs %s, which is not set (`make bench` starts the brokers)", c.name, c.needs))
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("unknown case %q; the cases are %s", asked, strings.Join(names(), " ")))
		}
	}
	return errors.Join(errs...)
}

func names() []string {
	var out []string
	for _, c := range cases() {
		out = append(out, c.name)
	}
	return out
}

func main() {
	if serve() {
		return
	}
	var o options
	only := flag.String("case", "", "comma-separated cases; empty = all whose broker is given")
	flag.IntVar(&o.rounds, "rounds", fullRounds, "interleaved rounds")
	flag.Float64Var(&o.scale, "scale", 1, "factor on the number of messages")
	into := flag.String("into", "", "write the sections of this run into this page, between the lines that name their cases")
	page := flag.String("page", "", "write the tables into this page too, over those of the same cases")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "bench: %q is not a flag\n", flag.Args())
		os.Exit(2)
	}

	if err := o.refuse(*only, os.Getenv); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(2)
	}
	r := &report{w: os.Stdout}
	fmt.Printf("%s %s/%s, %d cores, %s, %d rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		time.Now().Format(time.DateOnly), o.rounds)
	err := r.measure(o, *only)
	held := r.finish()
	if *page != "" {
		err = errors.Join(err, writePage(*page, o, r))
	}
	if *into != "" {
		err = errors.Join(err, writeInto(*into, o, r))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	}
	if err != nil || !held {
		os.Exit(1)
	}
}

// measure runs the cases. One that fails has no section, and ends the run: those before
// it keep theirs.
func (r *report) measure(o options, only string) error {
	for _, c := range cases() {
		if !chosen(c.name, only) {
			continue
		}
		if c.needs != "" && os.Getenv(c.needs) == "" {
			fmt.Printf("\n%s: not run, needs %s\n", c.name, c.needs)
			continue
		}
		fmt.Fprintf(os.Stderr, "%s ", c.name)
		r.begin(c.name, o.rounds)
		if err := c.run(o, r); err != nil {
			r.drop()
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}
