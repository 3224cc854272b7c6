package hops

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
)

// Route is the way of a consumer's dead letters.
type Route struct {
	Name string   // of the consumer, for the error
	From []string // the places it consumes
	To   string   // where its dead letters go; "" if they leave the broker or stay
}

// Cycle returns an error that names the consumers whose dead letters go round, nil if there
// are none.
func Cycle(routes []Route) error {
	next, names := map[string]string{}, map[string]string{} // by source
	for _, r := range routes {
		if r.To == "" {
			continue
		}
		for _, from := range r.From {
			next[from], names[from] = r.To, r.Name
		}
	}
	for _, start := range slices.Sorted(maps.Keys(next)) {
		path := []string{names[start]}
		for at := next[start]; ; at = next[at] {
			if at == start {
				return &longshore.Error{Code: longshore.CodeConfig, Op: "check dead letters",
					Err:  fmt.Errorf("they go round: %s and back to its source", strings.Join(path, " → ")),
					Hint: "let the last container keep or discard its dead letters, or send them to a place that no container consumes"}
			}
			if _, ok := next[at]; !ok || len(path) > len(next) {
				break
			}
			path = append(path, names[at])
		}
	}
	return nil
}
