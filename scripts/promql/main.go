// Command promql reads the expressions of a dashboard and of pages with Prometheus's
// own parser and compares them with what a scrape really showed:
//
//	promql page.txt dashboard.json scale-out.md
//
// Each metric and each label must be there, and the two sides of an operation without
// on() must have the same labels, or nothing would match. It is a module of its own,
// so that nobody else needs Prometheus's source.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: promql PAGE FILE...")
		os.Exit(2)
	}
	c := checker{labels: map[string]map[string]bool{}}
	c.scraped(read(os.Args[1]))
	n := 0
	for _, file := range os.Args[2:] {
		for _, expr := range expressions(file, read(file)) {
			n++
			c.check(file, expr)
		}
	}
	for _, problem := range c.problems {
		fmt.Println(problem)
	}
	fmt.Printf("promql: %d expressions against %d metrics, %d problems\n", n, len(c.labels), len(c.problems))
	if n == 0 || len(c.problems) > 0 {
		os.Exit(1)
	}
}

func read(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return string(b)
}

// expressions are the targets of a dashboard, or the promql blocks and the queries of a page.
func expressions(file, text string) (all []string) {
	if strings.HasSuffix(file, ".json") {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			fmt.Fprintln(os.Stderr, file, err)
			os.Exit(1)
		}
		return exprs(v)
	}
	for _, m := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	for _, m := range regexp.MustCompile("(?s)query: \\|\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

func exprs(v any) (all []string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			all = append(all, exprs(x)...)
		}
	case map[string]any:
		if expr, ok := v["expr"].(string); ok {
			all = append(all, expr)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, exprs(v[name])...)
		}
	}
	return all
}

type checker struct {
	labels   map[string]map[string]bool // by metric
	problems []string
}

// scraped takes the names of the metrics and their labels from a page.
func (c *checker) scraped(page string) {
	label := regexp.MustCompile(`[{,]([a-zA-Z_]+)="`)
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		name := line[:strings.IndexAny(line, "{ ")]
		if c.labels[name] == nil {
			c.labels[name] = map[string]bool{"instance": true, "job": true} // Prometheus adds them
		}
		for _, m := range label.FindAllStringSubmatch(line, -1) {
			c.labels[name][m[1]] = true
		}
	}
}

func (c *checker) check(file, text string) {
	bad := func(format string, args ...any) {
		c.problems = append(c.problems, fmt.Sprintf("%s: %s: %s", file, strings.TrimSpace(text), fmt.Sprintf(format, args...)))
	}
	plain := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(text)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(plain)
	if err != nil {
		bad("%v", err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			have, ok := c.labels[n.Name]
			if !ok {
				bad("unknown metric %s", n.Name)
			}
			for _, m := range n.LabelMatchers {
				if m.Name != "__name__" && ok && !have[m.Name] {
					bad("%s has no label %s", n.Name, m.Name)
				}
			}
		case *parser.AggregateExpr:
			have := c.of(n.Expr)
			for _, name := range n.Grouping {
				if have != nil && !have[name] {
					bad("%s is not a label of the aggregated series", name)
				}
			}
		case *parser.BinaryExpr:
			l, r := c.of(n.LHS), c.of(n.RHS)
			if l != nil && r != nil && n.VectorMatching != nil && !n.VectorMatching.On && len(n.VectorMatching.MatchingLabels) == 0 && !n.Op.IsSetOperator() && !maps.Equal(l, r) {
				bad("%v on the left of %s and %v on its right never match", slices.Sorted(maps.Keys(l)), n.Op, slices.Sorted(maps.Keys(r)))
			}
		}
		return nil
	})
}

// of are the labels of an expression's result; nil: a number, or not known.
func (c *checker) of(e parser.Expr) map[string]bool {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return c.labels[e.Name]
	case *parser.MatrixSelector:
		return c.of(e.VectorSelector)
	case *parser.ParenExpr:
		return c.of(e.Expr)
	case *parser.Call:
		if len(e.Args) > 0 {
			return c.of(e.Args[len(e.Args)-1])
		}
	case *parser.BinaryExpr:
		if l := c.of(e.LHS); l != nil {
			return l
		}
		return c.of(e.RHS)
	case *parser.AggregateExpr:
		if e.Without {
			return nil
		}
		out := map[string]bool{}
		for _, name := range e.Grouping {
			out[name] = true
		}
		return out
	}
	return nil
}
