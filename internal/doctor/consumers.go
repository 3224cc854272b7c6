package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore"
)

// rabbitConsumer is a consumer of a queue, as the management API shows it.
type rabbitConsumer struct {
	Tag     string `json:"consumer_tag"`
	Channel struct {
		Connection string `json:"connection_name"`
		Host       string `json:"peer_host"`
	} `json:"channel_details"`
	Active   *bool  `json:"active"` // nil: the broker does not say
	Prefetch int    `json:"prefetch_count"`
	Acks     bool   `json:"ack_required"`
	Program  string `json:"-"` // binary and version of a Longshore client
	Name     string `json:"-"` // what the client calls itself
}

// rabbitStats are the sums of a queue since its node started.
type rabbitStats struct {
	Publish int64 `json:"publish"`
	Deliver int64 `json:"deliver_get"`
}

const (
	mostConsumers = 50 // of which the connection is looked up
	tagOfOurs     = "longshore-"
)

// who is what makes consumers of one service alike.
func (c *rabbitConsumer) who() string {
	switch {
	case c.Program != "":
		return c.Program
	case strings.HasPrefix(c.Tag, tagOfOurs):
		return "a Longshore client that does not report its version (an older one)"
	case c.Name != "":
		return c.Name + " (not Longshore)"
	}
	return "a client that is not Longshore"
}

// rabbitConsumers names what else takes messages from the queue.
func rabbitConsumers(f *findings, all []rabbitConsumer) {
	from := map[string][]string{}
	for _, c := range all {
		from[c.who()] = append(from[c.who()], c.Channel.Host)
	}
	if len(from) < 2 {
		return
	}
	var parts []string
	for who, hosts := range from {
		slices.Sort(hosts)
		parts = append(parts, fmt.Sprintf("%d of %s from %s", len(hosts), who, strings.Join(slices.Compact(hosts), ", ")))
	}
	slices.Sort(parts)
	f.add("queue", Warn, "stop the ones that do not belong here, or give them a queue of their own", "different programs share its messages: %s", strings.Join(parts, "; "))
}

// mostShown is how many consumers are described one by one.
const mostShown = 5

// rabbitView describes the consumers as RabbitMQ sees them, to be compared with what their
// containers say.
func rabbitView(f *findings, q *rabbitQueue) {
	for _, c := range q.Details[:min(len(q.Details), mostShown)] {
		f.add("consumer", OK, "", "RabbitMQ's view of %s from %s: %s", c.Tag, c.Channel.Host, c.view())
	}
	if more := len(q.Details) - mostShown; more > 0 {
		f.add("consumer", OK, "", "and %s more", several(strconv.Itoa(more), "consumer"))
	}
	if q.Capacity != nil && q.Consumers > 0 {
		f.add("consumer", OK, "", "RabbitMQ's consumer capacity %.2f: the share of time in which it could hand a message over at once", *q.Capacity)
	}
}

// view is what RabbitMQ knows of a consumer besides its name.
func (c *rabbitConsumer) view() string {
	text := "prefetch unlimited"
	if c.Prefetch > 0 {
		text = fmt.Sprintf("prefetch %d", c.Prefetch)
	}
	if c.Acks {
		text += ", acknowledgements required"
	} else {
		text += ", no acknowledgements: what it takes is lost with it"
	}
	switch {
	case c.Active == nil:
	case *c.Active:
		text += ", active"
	default:
		text += ", stands by"
	}
	return text
}

// identify asks who the consumers are. A user who may not see connections learns less.
func (m *management) identify(ctx context.Context, all []rabbitConsumer) error {
	if len(all) < 2 {
		return nil
	}
	for i := range all[:min(len(all), mostConsumers)] {
		var conn struct {
			Properties struct {
				Program string `json:"longshore_program"`
				Name    string `json:"connection_name"`
				Product string `json:"product"`
			} `json:"client_properties"`
		}
		_, err := m.get(ctx, &conn, "connections", all[i].Channel.Connection)
		if errors.Is(err, longshore.CodeForbidden) {
			return nil
		}
		if err != nil {
			return err
		}
		all[i].Program, all[i].Name = conn.Properties.Program, conn.Properties.Name
		if all[i].Name == "" {
			all[i].Name = conn.Properties.Product
		}
	}
	return nil
}
