package autoscale_test

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// hours bounds another policy by the hour: at least Day workers from 8 to 18 o'clock
// in Zone, at most Night otherwise.
type hours struct {
	autoscale.Policy
	Zone       *time.Location
	Day, Night int
}

func (h hours) New() autoscale.Scaler { return hoursScaler{h, h.Policy.New()} }

type hoursScaler struct {
	hours
	rest autoscale.Scaler
}

func (h hoursScaler) Next(s autoscale.Sample) autoscale.Decision {
	if hour := s.Now.In(h.Zone).Hour(); hour >= 8 && hour < 18 {
		s.Min = max(s.Min, min(h.Day, s.Max))
	} else {
		s.Max = max(min(s.Max, h.Night), s.Min)
	}
	d := h.rest.Next(s)
	d.Target = min(max(d.Target, s.Min), s.Max)
	if d.Target != s.Workers && d.Reason == "" {
		d.Reason = "schedule"
	}
	return d
}

// A policy of one's own: bounds by the hour around the default policy.
func Example_schedule() {
	p := hours{Policy: autoscale.Adaptive{}, Zone: time.UTC, Day: 8, Night: 4}.New()
	now, workers := time.Date(2026, 1, 5, 7, 59, 0, 0, time.UTC), 2
	for now.Hour() < 19 {
		now = now.Add(500 * time.Millisecond)
		d := p.Next(autoscale.Sample{Now: now, Dt: 500 * time.Millisecond, Min: 2, Max: 30, Workers: workers,
			BacklogAge: -1, Permits: -1, Window: -1, Lanes: -1})
		if d.Target != workers {
			fmt.Println(now.Format(time.TimeOnly), workers, "to", d.Target, d.Reason)
			workers = d.Target
		}
	}
	// Output:
	// 08:00:00 2 to 8 schedule
	// 18:00:00 8 to 4 ceiling
	// 18:00:45 4 to 2 idle
}
