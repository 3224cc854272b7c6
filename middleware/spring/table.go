package spring

import (
	"maps"
	"slices"

	"github.com/longshore-go/longshore"
)

// table is an object in the order of its names: JSON's order means nothing.
func table(object map[string]any) longshore.Headers {
	out := make(longshore.Headers, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		out = append(out, longshore.Header{Name: name, Value: plain(object[name])})
	}
	return out
}
