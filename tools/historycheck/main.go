package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/history"
)

func main() {
	var r rules
	flag.BoolVar(&r.ordered, "ordered", false, "a message of a key starts when those before it are done, one at a time")
	flag.BoolVar(&r.left, "left", false, "messages may be left in the source")
	flag.BoolVar(&r.effects, "effects", false, "each message that was done had exactly one effect")
	flag.DurationVar(&r.stall, "stall", 30*time.Second, "while a majority of the brokers answers and work waits, a handler starts at least so often; 0 = not checked")
	flag.DurationVar(&r.grace, "grace", 2*time.Second, "how much later than its deadline a drain may end")
	most := flag.Int("n", 20, "print at most so many violations")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "historycheck: name one folder with a history")
		os.Exit(2)
	}
	events, err := history.Read(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "historycheck:", err)
		os.Exit(2)
	}
	found := check(events, r)
	fmt.Println(summary(events))
	printCosts(os.Stdout, costs(events))
	for i, v := range found {
		if i == *most {
			fmt.Printf("and %d more\n", len(found)-i)
			break
		}
		fmt.Printf("%s %-10s %s\n", time.Unix(0, v.At).UTC().Format("15:04:05.000"), v.Rule, v.Text)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// summary counts what a history contains, so that an empty one does not look like a good one.
func summary(events []history.Event) string {
	counts := map[history.Kind]int{}
	for _, e := range events {
		counts[e.Kind]++
	}
	var text []string
	for _, k := range []history.Kind{history.Published, history.Confirmed, history.Started, history.Done, history.Failed, history.Canceled,
		history.Dead, history.Left, history.Killed, history.Frozen, history.Fault, history.Drained} {
		text = append(text, fmt.Sprintf("%d %s", counts[k], k))
	}
	return strings.Join(text, ", ")
}
