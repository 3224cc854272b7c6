package scalesim

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/container/autoscale"
)

// atMax is a pool of fixed size.
type atMax struct{}

func (atMax) Check() error          { return nil }
func (atMax) New() autoscale.Scaler { return atMax{} }
func (atMax) Next(s autoscale.Sample) (d autoscale.Decision) {
	return autoscale.Decision{Target: s.Max, Reason: "max"}
}

const (
	tablePage  = "../../../../docs/explanation/autoscaling.md"
	tableBegin = "<!-- figures: written by make autoscale -->\n"
	tableEnd   = "<!-- end of figures -->\n"
)

// The table of the documentation: every scenario and figure by every policy.
func TestTableIsWritten(t *testing.T) {
	if !writes() {
		return
	}
	var b strings.Builder
	b.WriteString(tableBegin + "| scenario | figure | bar | Adaptive | Consecutive | Spring's rule | fixed at Max |\n|---|---|---|---|---|---|---|\n")
	for _, sc := range scenarios() {
		var by [][]float64
		for _, p := range []autoscale.Policy{autoscale.Adaptive{}, autoscale.Consecutive{}, spring{}, atMax{}} {
			by = append(by, figures(sc, p, 5))
		}
		for i, f := range sc.figures {
			bar := "–"
			switch {
			case f.lo > 0:
				bar = fmt.Sprintf("%v to %v", f.lo, f.hi)
			case f.hi > 0:
				bar = fmt.Sprintf("≤ %v", f.hi)
			}
			name := f.name
			if f.worst {
				name += ", worst seed"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | **%s** | %s | %s | %s |\n", sc.name, name, bar, text(by[0][i]), text(by[1][i]), text(by[2][i]), text(by[3][i]))
		}
	}
	b.WriteString(tableEnd)
	page, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", tablePage)
	}
	if err := os.WriteFile(tablePage, []byte(before+b.String()+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
