package sqs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/longshore-go/longshore"
)

// Beside returns the address of the queue that a name means for whoever works with
// another queue, such as a dead-letter queue given by name for a source given by URL: the
// same host and account, or the same region and account. A URL or an ARN, and a name
// beside a name, are returned as they are.
func Beside(queue, to string) string {
	ref, err := parseReference(queue)
	if err != nil || !queueName(to) {
		return to
	}
	switch {
	case ref.url != "":
		return ref.url[:strings.LastIndexByte(ref.url, '/')+1] + to
	case ref.account != "":
		return ref.arn[:strings.LastIndexByte(ref.arn, ':')+1] + to
	}
	return to
}

// onAWS reports whether the queue was given by an address of AWS itself.
func (r reference) onAWS() bool { return r.arn != "" || r.url != "" && r.region != "" }

// near resolves a destination for whoever consumes r: a name lies alongside it, and an ARN is
// looked up at the same host, unless that is AWS and the ARN is of another region.
func (r reference) near(dest string) (reference, error) {
	to, err := parseReference(Beside(first(r.url, r.arn, r.name), dest))
	if err == nil && to.arn != "" && r.origin != "" && (!r.onAWS() || r.region == to.region) {
		to.origin = r.origin
	}
	return to, err
}

// origins are the hosts of queues that a broker was given by URL. A broker without an
// endpoint whose queues all live on one host that is not AWS resolves names there: a
// process that knows local addresses only must never send anything elsewhere.
type origins struct {
	mu    sync.Mutex      // guards what follows
	local map[string]bool // scheme://host
	aws   bool            // a URL or an ARN of AWS is among them
}

// add notes where a queue lives.
func (o *origins) add(r reference) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case r.onAWS():
		o.aws = true
	case r.origin != "":
		if o.local == nil {
			o.local = map[string]bool{}
		}
		o.local[r.origin] = true
	}
}

// of returns where a queue that was given without a host lives; "" is the region's
// endpoint.
func (o *origins) of(r reference) (origin string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case r.origin != "":
		return r.origin, nil
	case o.aws || len(o.local) == 0:
		return "", nil
	case len(o.local) == 1:
		for origin = range o.local {
			return origin, nil
		}
	}
	return "", &longshore.Error{Code: longshore.CodeBadAddress, Op: "sqs queue " + quote(r.name), Source: r.name,
		Err:  fmt.Errorf("%w: the broker's queues are at %s", errNoHost, strings.Join(slices.Sorted(maps.Keys(o.local)), " and ")),
		Hint: "set Config.Endpoint, or give the queue's URL"}
}

// errNoHost is a name that could mean queues of several hosts.
var errNoHost = errors.New("the name does not say on which host the queue is")
