package hops

import (
	"fmt"

	"github.com/longshore-go/longshore"
)

// Header carries the count.
const Header = "longshore-dead-hops"

// Limit is the most moves of a message unless configured otherwise.
const Limit = 8

// Of is how many moves a message has behind it: what our header says, and the rejections
// that RabbitMQ has noted in x-death since.
func Of(h longshore.Headers) int64 {
	n, _ := h.Int(Header)
	n = max(n, 0)
	deaths, _ := h.Get("x-death")
	list, _ := deaths.([]any)
	for _, d := range list {
		death, _ := d.(longshore.Headers)
		if count, ok := death.Int("count"); ok && count > 0 && death.String("reason") == "rejected" {
			n += count
		}
	}
	return n
}

// Check refuses the next move of a message that has made as many as the limit; setting
// names what may be raised.
func Check(h longshore.Headers, limit int, setting string) error {
	n := Of(h)
	if n < int64(limit) {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeHops, Err: fmt.Errorf("it has been moved to dead-letter destinations and put back %d times, as often as %s allows", n, setting),
		Hint: "dead letters go round: let one of the containers keep them or send them to a place that none consumes, or raise " + setting}
}
