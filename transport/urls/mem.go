package urls

import (
	"net/url"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// mem://name?prefetch=n&dead-letter=name
func memScheme() scheme {
	return scheme{names: []string{"mem"}, form: "mem://name", params: []string{"prefetch", "dead-letter"}, open: openMem}
}

func openMem(a *address, o Options) (transport.Source, error) {
	a.noPassword(o)
	cfg := memory.QueueConfig{Prefetch: a.number("prefetch"), DeadLetter: a.take("dead-letter")}
	name, err := url.PathUnescape(a.place)
	if err != nil || name == "" {
		return nil, &longshore.Error{Code: longshore.CodeBadAddress, Op: "source URL of the form " + a.form,
			Hint: "name a queue after mem://, percent-encoded"}
	}
	b := o.Memory
	if b == nil {
		b = memory.New(memory.Config{})
	}
	return b.Queue(name, cfg), nil
}
