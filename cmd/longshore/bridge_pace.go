package main

import (
	"fmt"
	"strings"
	"time"
)

// pace is how far and how fast messages move, for run and for the steps of a move.
type pace struct {
	moved, known int64 // known < 0: the source does not count
	lag          int64 // messages left at the source; < 0: unknown
	rate         float64
	eta, age     time.Duration // 0: unknown
	limit        string        // the side that limits the rate; "": none
}

// String is "moved 8530 of 9000, 512/s, lag 470, ETA 1s, age 4ms, limited by target".
func (p pace) String() string {
	parts := []string{fmt.Sprintf("moved %d", p.moved)}
	if p.known >= 0 {
		parts[0] += fmt.Sprintf(" of %d", p.known)
	}
	parts = append(parts, perSecond(p.rate))
	if p.lag >= 0 {
		parts = append(parts, fmt.Sprintf("lag %d", p.lag))
	}
	if p.eta > 0 {
		parts = append(parts, "ETA "+p.eta.Round(time.Second).String())
	}
	if p.age > 0 {
		parts = append(parts, "age "+p.age.Round(time.Millisecond).String())
	}
	if p.limit != "" {
		parts = append(parts, "limited by "+p.limit)
	}
	return strings.Join(parts, ", ")
}
