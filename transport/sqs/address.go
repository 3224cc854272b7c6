package sqs

import (
	"net/url"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
)

// reference is a queue as a user names it: by name, URL or ARN.
type reference struct {
	name    string // without region and account
	region  string // from an ARN or an AWS host; "" otherwise
	account string // from an ARN
	arn     string // as given
	url     string // as given
	origin  string // scheme://host of a URL
}

// parseReference takes a queue's name, URL or ARN apart. Account and region stay empty where
// the text does not say them.
func parseReference(s string) (reference, error) {
	bad := func(why, hint string) (reference, error) {
		return reference{}, badQueue(why, hint)
	}
	switch {
	case s == "":
		return bad("no queue is named", "give a name, a URL or an ARN")
	case strings.HasPrefix(s, "arn:"):
		parts := strings.Split(s, ":")
		if len(parts) != 6 || parts[2] != "sqs" || parts[3] == "" || parts[4] == "" || !queueName(parts[5]) {
			return bad("the ARN is not that of a queue", "write arn:aws:sqs:REGION:ACCOUNT:NAME")
		}
		return reference{name: parts[5], region: parts[3], account: parts[4], arn: s}, nil
	case strings.Contains(s, "://"):
		return parseQueueURL(s)
	case !queueName(s):
		return bad("this is not a valid queue name", "use letters, digits, hyphens and underscores, at most 80, and .fifo at the end of a FIFO queue; or give a URL or an ARN")
	}
	return reference{name: s}, nil
}

// badQueue is the error of a reference that cannot be a queue's.
func badQueue(why, hint string) error {
	e := problem.Bad("", hint, why).Of("sqs queue", "")
	e.Code = longshore.CodeBadAddress
	return e
}

// parseQueueURL refuses user and parameters: a URL with credentials would be printed in errors
// and logs.
func parseQueueURL(s string) (reference, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return reference{}, badQueue("the URL is not that of a queue", "write https://HOST/ACCOUNT/NAME, without user or parameters")
	}
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	if !queueName(name) {
		return reference{}, badQueue("the URL does not end with the name of a queue", "write https://HOST/ACCOUNT/NAME")
	}
	return reference{name: name, region: regionOfHost(u.Hostname()), url: s, origin: u.Scheme + "://" + u.Host}, nil
}

// regionOfHost reads sqs.REGION.amazonaws.com, also with -fips, of other
// partitions, dual stack and VPC endpoints, and the old REGION.queue.amazonaws.com.
func regionOfHost(host string) string {
	labels := strings.Split(host, ".")
	if !strings.Contains(host, ".amazonaws.") && !strings.HasSuffix(host, ".api.aws") {
		return ""
	}
	for i, l := range labels[:len(labels)-1] {
		switch {
		case l == "sqs" || l == "sqs-fips":
			return labels[i+1]
		case l == "queue" && i == 1:
			return labels[0]
		case l == "queue" && i == 0:
			return "us-east-1"
		}
	}
	return ""
}

// queueName says whether SQS would take the name. Checked here, a typing error is found without
// a call.
func queueName(s string) bool {
	stem := strings.TrimSuffix(s, ".fifo")
	if stem == "" || len(s) > 80 {
		return false
	}
	for i := 0; i < len(stem); i++ {
		c := stem[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// stem is the name without the ending that says FIFO.
func (r reference) stem() string { return strings.TrimSuffix(r.name, ".fifo") }

// isFIFO goes by the name: SQS refuses FIFO queues without the suffix, and the suffix on others.
func isFIFO(name string) bool { return strings.HasSuffix(name, ".fifo") }

// place is where the calls for a queue go.
type place struct {
	region, endpoint string // endpoint "" = the region's
	regionFrom       string // for errors
}

// locate finds the place, by the order in the package documentation. env is
// what the SDK found in the environment and the profile, others are the broker's other
// queues.
func locate(ref reference, cfg *Config, env place, others *origins) (place, error) {
	p := place{endpoint: first(cfg.Endpoint, env.endpoint)}
	if p.endpoint == "" {
		var err error
		if p.endpoint, err = others.of(ref); err != nil {
			return p, err
		}
	}
	switch {
	case cfg.Region != "":
		p.region, p.regionFrom = cfg.Region, "Config.Region"
	case ref.region != "":
		p.region, p.regionFrom = ref.region, "the queue's address"
	case env.region != "":
		p.region, p.regionFrom = env.region, "the environment or profile"
	default:
		unknown := problem.Required("Region", "set {Region}, AWS_REGION or a profile, or give the queue's ARN or URL")
		unknown.MaySupply = true
		return p, unknown.Of("sqs queue "+quote(ref.name), ref.name)
	}
	return p, nil
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

func quote(s string) string { return `"` + s + `"` }
