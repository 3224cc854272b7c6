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
		{"scale", "", scale},
		{"rabbit", "AMQP_URL", rabbit},
	}
	return slices.Concat(cs, kafkaCases("kafka", kafkaGiven), kafkaCases("kafka-fake", kafkaEmbedded), sqsCases(), jvmCases())
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

	r := &report{w: os.Stdout}
	fmt.Printf("%s %s/%s, %d cores, %s, %d rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		time.Now().Format(time.DateOnly), o.rounds)
	for _, c := range cases() {
		if !chosen(c.name, *only) {
			continue
		}
		if c.needs != "" && os.Getenv(c.needs) == "" {
			fmt.Printf("\n%s: not run, needs %s\n", c.name, c.needs)
			continue
		}
		fmt.Fprintf(os.Stderr, "%s ", c.name)
		r.begin(c.name, o.rounds)
		if err := c.run(o, r); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", c.name, err)
			os.Exit(1)
		}
	}
	held := r.finish()
	var err error
	if *page != "" {
		err = writePage(*page, o, r)
	}
	if *into != "" {
		err = errors.Join(err, writeInto(*into, o, r))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
	if !held {
		os.Exit(1)
	}
}
