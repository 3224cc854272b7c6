package observe

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	dashboardFile = "../../telemetry/prom/dashboard.json"
	scalePage     = "../../docs/how-to/scale-out.md"
)

// dashboard is what is asked of it here.
type dashboard struct {
	Templating struct {
		List []struct {
			Name, Type, Definition string
		}
	}
	Panels []panel
}

type panel struct {
	Type, Title string
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	raw, err := os.ReadFile(dashboardFile)
	must(t, err)
	must(t, json.Unmarshal(raw, &d))
	return d
}

// asGrafana fills in the variables as Grafana does for "All" and a scrape interval of
// one second, of which a rate takes four at least.
func asGrafana(expr string) string {
	return strings.NewReplacer("$container", ".*", "$destination", ".*", "$instance", ".*", "$__rate_interval", "5s", "$__range", "1m").Replace(expr)
}

// expressions of the dashboard, by the panel's title and the query's letter.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			all[p.Title+" "+target.RefID] = asGrafana(target.Expr)
		}
	}
	return all
}

// notDone are the two expressions of the page, for a queue and for a log.
func notDone(t *testing.T) (queue, log string) {
	t.Helper()
	blocks := blocks(t, "promql")
	if len(blocks) != 2 {
		t.Fatalf("%s has %d expressions", scalePage, len(blocks))
	}
	return blocks[0], blocks[1]
}

func blocks(t *testing.T, kind string) (all []string) {
	t.Helper()
	raw, err := os.ReadFile(scalePage)
	must(t, err)
	for _, m := range regexp.MustCompile("(?s)```"+kind+"\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		all = append(all, m[1])
	}
	return all
}

// manifest decodes the page's manifest of a kind.
func manifest(t *testing.T, kind string, into any) {
	t.Helper()
	for _, block := range blocks(t, "yaml") {
		var is struct{ Kind string }
		must(t, yaml.Unmarshal([]byte(block), &is))
		if is.Kind == kind {
			must(t, yaml.Unmarshal([]byte(block), into))
			return
		}
	}
	t.Fatalf("%s has no %s", scalePage, kind)
}

// want says what is odd about the series of an answer.
type want func(all []sample) error

// some looks at the series for which the labels are as given ("" = all): at least one
// of them, and each right.
func some(labels string, right func(v float64) bool) want {
	return func(all []sample) error {
		n := 0
		for _, s := range all {
			if s.has(labels) {
				if n++; !right(s.value) {
					return fmt.Errorf("%s is not right; all: %v", s, all)
				}
			}
		}
		if n == 0 {
			return fmt.Errorf("no series %s; all: %v", labels, all)
		}
		return nil
	}
}

func (s sample) has(labels string) bool {
	for pair := range strings.FieldsSeq(labels) {
		if name, value, _ := strings.Cut(pair, "="); s.labels[name] != value {
			return false
		}
	}
	return true
}

func both(all ...want) want {
	return func(series []sample) error {
		for _, w := range all {
			if err := w(series); err != nil {
				return err
			}
		}
		return nil
	}
}

func series(n int) want {
	return func(all []sample) error {
		if len(all) != n {
			return fmt.Errorf("%d series, not %d: %v", len(all), n, all)
		}
		return nil
	}
}

func is(v float64) func(float64) bool { return func(got float64) bool { return got == v } }
func from(low, high float64) func(float64) bool {
	return func(got float64) bool { return got >= low && got <= high }
}
func above(low float64) func(float64) bool { return func(got float64) bool { return got > low } }
