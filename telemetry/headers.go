package telemetry

import "github.com/longshore-go/longshore"

// carrier lets a propagator read and write the headers of a message.
type carrier struct{ h *longshore.Headers }

func (c carrier) Get(key string) string { return c.h.String(key) }

func (c carrier) Set(key, value string) { c.h.Set(key, value) }

func (c carrier) Keys() []string {
	out := make([]string, 0, len(*c.h))
	for _, h := range *c.h {
		out = append(out, h.Name)
	}
	return out
}
