package scalesim

import "github.com/longshore-go/longshore/internal/testkit/plot"

// workers is a run's target over time.
func (r *result) workers(name, color string) plot.Line {
	return plot.Line{Name: name, Color: color, Step: true, At: func(t float64) float64 {
		i := min(int(t/tick), len(r.points)) - 1
		if i < 0 {
			return float64(r.load.min)
		}
		return float64(r.points[i].Workers)
	}}
}
