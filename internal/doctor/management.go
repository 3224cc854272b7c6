package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/rabbitapi"
	"github.com/longshore-go/longshore/transport"
)

// askManagement queries the management API about a queue. live are the settings read over AMQP;
// they name the cluster, and their counts win, because those of the API are up to five seconds old.
func askManagement(ctx context.Context, p Patient, live map[string]string, name string) ([]Check, error) {
	base, err := url.Parse(p.Management)
	if err != nil || base.Host == "" {
		return nil, &longshore.Error{Code: longshore.CodeBadAddress, Op: "ask RabbitMQ's management API", Err: errors.New("its address cannot be read"),
			Hint: "write http://user:password@host:15672"} // err would show the password
	}
	m := &management{base: base, client: p.Client}
	if m.client == nil {
		few := &http.Transport{Proxy: http.ProxyFromEnvironment}
		defer few.CloseIdleConnections()
		m.client = &http.Client{Transport: few}
	}
	about, err := m.overview(ctx)
	if err != nil {
		return nil, err
	}
	if cluster := live["cluster_name"]; cluster != "" && about.Cluster != "" && about.Cluster != cluster {
		return nil, &strangerError{host: base.Host, have: about.Cluster, want: cluster}
	}
	q, err := m.queue(ctx, p.VHost, name)
	if err != nil {
		return nil, err
	}
	if q == nil {
		return noQueue(p.VHost, name), nil
	}
	q.Version, q.Own = about.Version, p.own()
	q.count(live)
	if d, ok := p.Source.(transport.Declarer); ok {
		q.Wanted = d.Declares()
	}
	policy, err := m.policies(ctx, p, name, q)
	if err != nil {
		return nil, err
	}
	if q.DLXBound, err = m.leadsOn(ctx, p.VHost, q); err != nil { // a policy may name the exchange
		return nil, err
	}
	return append(judgeRabbit(q, p.Handler), policy...), nil
}

type management struct {
	base   *url.URL
	client *http.Client
}

// overview is what the management API reports about itself.
type overview struct {
	Version string `json:"rabbitmq_version"`
	Cluster string `json:"cluster_name"`
}

func (m *management) overview(ctx context.Context) (o overview, err error) {
	_, err = m.get(ctx, &o, "overview")
	return o, err
}

func (m *management) queue(ctx context.Context, vhost, name string) (*rabbitQueue, error) {
	q := &rabbitQueue{}
	found, err := m.get(ctx, q, "queues", vhost, name)
	if err != nil || !found {
		return nil, err
	}
	q.Counted = true
	if err := m.identify(ctx, q.Details); err != nil {
		return nil, err
	}
	var nodes []struct {
		Memory bool `json:"mem_alarm"`
		Disk   bool `json:"disk_free_alarm"`
	}
	if _, err := m.get(ctx, &nodes, "nodes"); err != nil && !errors.Is(err, longshore.CodeForbidden) {
		return nil, err
	}
	for _, n := range nodes {
		switch {
		case n.Memory:
			q.Alarm = "memory"
		case n.Disk:
			q.Alarm = "disk"
		}
	}
	return q, nil
}

// leadsOn reports whether the queue's dead-letter exchange leads to anything.
func (m *management) leadsOn(ctx context.Context, vhost string, q *rabbitQueue) (bool, error) {
	exchange, ok := q.text("dead-letter-exchange")
	if !ok {
		return false, nil
	}
	if exchange == "" { // the default one: the routing key is the queue
		key, ok := q.text("dead-letter-routing-key")
		if !ok {
			return true, nil // each message's own key
		}
		return m.get(ctx, &struct{}{}, "queues", vhost, key)
	}
	var bindings []json.RawMessage
	found, err := m.get(ctx, &bindings, "exchanges", vhost, exchange, "bindings", "source")
	return found && len(bindings) > 0, err
}

// get is false where there is no such thing.
func (m *management) get(ctx context.Context, into any, path ...string) (bool, error) {
	password, _ := m.base.User.Password()
	c := rabbitapi.Client{Base: m.base, User: m.base.User.Username(), Password: password, HTTP: m.client,
		Hint: "name it with --management http://user:password@host:15672; the user needs the tag monitoring"}
	return c.Get(ctx, into, path...)
}
