package rabbitapi

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Policy is what the management API reports about a policy, or of an operator policy.
type Policy struct {
	Name       string         `json:"name"`
	Pattern    string         `json:"pattern"`
	ApplyTo    string         `json:"apply-to"`
	Priority   int            `json:"priority"`
	Definition map[string]any `json:"definition"`
}

// matches reports whether the policy is for a queue of that name and type. A pattern that
// Go cannot read (RabbitMQ's are Perl's) may match.
func (p *Policy) matches(queue, kind string) bool {
	switch p.ApplyTo {
	case "all", "queues":
	case "classic_queues", "quorum_queues":
		if p.ApplyTo != kind+"_queues" {
			return false
		}
	default:
		return false
	}
	re, err := regexp.Compile(p.Pattern)
	return err != nil || re.MatchString(queue)
}

func strongest(all []Policy, queue, kind string) map[string]any {
	var best *Policy
	for i := range all {
		if p := &all[i]; p.matches(queue, kind) && (best == nil || p.Priority > best.Priority) {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	return best.Definition
}

// Effective is what policies say of a queue: of each kind the one with the highest
// priority holds, and where both have a number the lower one does.
func Effective(policies, operator []Policy, queue, kind string) map[string]any {
	out := map[string]any{}
	for _, set := range []map[string]any{strongest(policies, queue, kind), strongest(operator, queue, kind)} {
		for name, v := range set {
			out[name] = Lower(out[name], v)
		}
	}
	return out
}

// Lower is the smaller of two numbers, or the value that is there; of two others the
// second. A negative number means no limit, and gives way to one.
func Lower(a, b any) any {
	x, isX := a.(float64)
	y, isY := b.(float64)
	switch {
	case isX && isY && min(x, y) < 0:
		return max(x, y)
	case isX && isY:
		return min(x, y)
	case b == nil:
		return a
	}
	return b
}

// Role is what a queue is for.
type Role int

// The roles.
const (
	Source     Role = iota // consumed by a container
	DeadLetter             // keeps what failed for the last time
	Delay                  // keeps retries until they are due
)

// Finding is what a policy does to a queue of ours.
type Finding struct {
	Lost bool // messages may be lost
	Text string
	Hint string
}

// Judge says what policies do to a queue in its role.
func Judge(role Role, queue string, policy map[string]any) []Finding {
	var fs []Finding
	add := func(lost bool, hint, format string, args ...any) {
		fs = append(fs, Finding{Lost: lost, Text: fmt.Sprintf("a policy on %q: ", queue) + fmt.Sprintf(format, args...), Hint: hint})
	}
	millis := func(name string) (time.Duration, bool) {
		ms, ok := policy[name].(float64)
		return time.Duration(ms) * time.Millisecond, ok
	}
	overflow, _ := policy["overflow"].(string)
	refuses := strings.HasPrefix(overflow, "reject-publish")
	most, limited := policy["max-length"].(float64)
	if _, bytes := policy["max-length-bytes"].(float64); bytes && !limited {
		most, limited = 0, true
	}
	const exclude = "exclude the queue's name from the policy's pattern"
	if d, ok := millis("expires"); ok {
		add(true, exclude, "%s", map[Role]string{
			Source:     fmt.Sprintf("the queue is deleted with its messages %s after its last consumer has left", d),
			DeadLetter: fmt.Sprintf("the queue is deleted with its dead letters after %s, unless a container that declares it is running", d),
			Delay:      fmt.Sprintf("retries that wait there are deleted after %s, unless their container is running", d),
		}[role])
	}
	if d, ok := millis("message-ttl"); ok {
		switch role {
		case Source: // told with the queue's own settings
		case DeadLetter:
			add(true, exclude, "dead letters are dropped after %s", d)
		case Delay:
			add(false, exclude, "retries come back after %s, however long they should wait", d)
		}
	}
	switch {
	case role == Source && refuses:
		add(true, "set x-overflow in Declare.Arguments too: retries wait in the container then", "a retry that comes back from a delay queue to a full queue is dropped (overflow %s)", overflow)
	case role == DeadLetter && limited && refuses:
		add(false, "watch its length", "at its limit it takes no dead letters, and what failed for the last time stays in its own queue")
	case role == DeadLetter && limited:
		add(true, "set overflow to reject-publish, or exclude the queue", "at its limit %sthe oldest dead letters are dropped", count(most))
	case role == Delay && limited && refuses:
		add(false, exclude, "at its limit %sit takes no more retries, which wait in the container", count(most))
	case role == Delay && limited:
		add(false, exclude, "at its limit %sthe oldest retries come back early", count(most))
	}
	for name := range policy {
		if role == Source && strings.HasPrefix(name, "delayed-retry") {
			add(false, "leave delayed retries to the container, or count on later returns", "RabbitMQ delays messages returned to the queue (delayed-retry), including releases and those that a stop returns")
			break
		}
	}
	return fs
}

func count(n float64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("of %.0f messages ", n)
}
