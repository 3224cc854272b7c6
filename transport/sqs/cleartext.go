package sqs

import (
	"net/url"

	"github.com/longshore-go/longshore/internal/hosts"
)

// clearNotice warns of messages that cross a network without TLS; "" if they do not. The
// secret key is never sent, since calls are signed, but a session token and every body are.
func (p *place) clearNotice() string {
	u, err := url.Parse(p.endpoint)
	if err != nil || u.Scheme != "http" || hosts.Loopback(u.Hostname()) {
		return ""
	}
	return "messages, and the session token of temporary credentials, go to sqs at http://" + u.Host +
		" without TLS: anyone on the way can read and change them; use https in Endpoint or the queue's URL"
}
