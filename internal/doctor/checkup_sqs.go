package doctor

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// checkSQS judges the attributes of a queue and of its dead-letter queue (nil: not
// known). own: the container sees to its dead letters itself.
func checkSQS(queue, dead map[string]string, own bool, handler time.Duration) []Check {
	var f findings
	f.add("queue", OK, "", "%s visible, %s hidden, %s delayed", count(queue, ""), count(queue, "NotVisible"), count(queue, "Delayed"))
	sqsLease(&f, seconds(queue["VisibilityTimeout"]), handler)
	var policy struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	_ = json.Unmarshal([]byte(queue["RedrivePolicy"]), &policy) // absent or not to be read is the same here
	limit, _ := strconv.Atoi(strings.Trim(string(policy.Max), `"`))
	switch {
	case policy.Target == "" && own:
		f.add("limit", OK, "", "no redrive policy; the container sees to its dead letters itself")
	case policy.Target == "":
		f.add("limit", Warn, "set a redrive policy, or DeadLetter.To of the container; where that is set, name the container instead of the URL", "no redrive policy: what fails comes back until the retention deletes it")
	case limit < 3:
		f.add("limit", Warn, "set maxReceiveCount to 5 or more", "maxReceiveCount %d: a crash or two of consumers dead-letters messages that never failed", limit)
	default:
		f.add("limit", OK, "", "dead-lettered after %d receives, crashes of consumers among them", limit)
	}
	keeps, deadKeeps := seconds(queue["MessageRetentionPeriod"]), seconds(dead["MessageRetentionPeriod"])
	switch {
	case keeps > 0 && keeps < 24*time.Hour:
		f.add("retention", Warn, "set MessageRetentionPeriod to days", "messages are deleted after %s, consumed or not", span(keeps))
	case deadKeeps > 0 && deadKeeps <= keeps:
		f.add("retention", Warn, "set the dead-letter queue's MessageRetentionPeriod to the longest, 14 days",
			"the dead-letter queue keeps messages for %s, the queue for %s: the age counts on, so one that waited long is deleted soon after", span(deadKeeps), span(keeps))
	case keeps == 0:
		f.add("retention", Unknown, "look at the server's own settings", "the server does not tell how long messages are kept")
	default:
		f.add("retention", OK, "", "messages are kept for %s", span(keeps))
	}
	if dead["RedrivePolicy"] != "" {
		f.add("limit", Warn, "remove its redrive policy", "the dead-letter queue has a redrive policy itself: looking at dead letters moves them on")
	}
	return f
}

func sqsLease(f *findings, lease, handler time.Duration) {
	const longest = 12 * time.Hour // counted from the receive
	switch {
	case handler > longest:
		f.add("lease", Bad, "split the work: SQS allows no longer", "a handler may take %s; SQS takes a message back 12h after it was received", span(handler))
	case lease > 15*time.Minute:
		f.add("lease", Warn, "set VisibilityTimeout to minutes: it is extended as long as a handler runs",
			"visibility timeout %s: messages of a consumer that crashed stay hidden for as long", span(lease))
	case lease > 0 && lease < 10*time.Second:
		f.add("lease", Warn, "set VisibilityTimeout to 30s or more", "visibility timeout %s: a pause of that length, of the network or of the process, delivers a message twice", span(lease))
	default:
		f.add("lease", OK, "", "visibility timeout %s, extended as long as a handler runs", span(lease))
	}
}

func count(attrs map[string]string, kind string) string {
	if n := attrs["ApproximateNumberOfMessages"+kind]; n != "" {
		return n
	}
	return "?"
}

func seconds(text string) time.Duration {
	n, _ := strconv.Atoi(text) // 0 where it is not told
	return time.Duration(n) * time.Second
}
