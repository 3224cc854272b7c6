package doctor

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// checkSQS judges the attributes of a queue and of its dead-letter queue (nil: not
// known). own: the container sees to its dead letters itself. now is the time by which the
// queue's age is judged.
func checkSQS(queue, dead map[string]string, own bool, handler time.Duration, now time.Time) []Check {
	var f findings
	sqsCounts(&f, queue, now)
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
		f.add("limit", Unknown, "set a redrive policy or DeadLetter.To; if DeadLetter.To is set in code, name that queue with --dead, or name the container instead of the URL",
			"no redrive policy; without DeadLetter.To in the code of the container, failing messages return until the retention deletes them")
	case limit < 3:
		f.add("limit", Warn, "set maxReceiveCount to 5 or more", "maxReceiveCount %d: a crash or two of consumers dead-letters messages that never failed", limit)
	default:
		f.add("limit", OK, "", "dead-lettered after %d receives, stops and crashes of consumers among them; it should be at least MaxAttempts + 5", limit)
	}
	keeps, deadKeeps := seconds(queue["MessageRetentionPeriod"]), seconds(dead["MessageRetentionPeriod"])
	switch {
	case keeps > 0 && keeps < 24*time.Hour:
		f.add("retention", Warn, "set MessageRetentionPeriod to days", "messages are deleted after %s, consumed or not", span(keeps))
	case deadKeeps > 0 && deadKeeps <= keeps:
		f.add("retention", Warn, "set the dead-letter queue's MessageRetentionPeriod to the longest, 14 days",
			"the dead-letter queue keeps messages for %s, the queue for %s: the age counts on, so one that waited long is deleted soon after", span(deadKeeps), span(keeps))
	case keeps == 0:
		f.add("retention", Unknown, "look at the server's own settings", "the server does not report how long messages are kept")
	default:
		f.add("retention", OK, "", "messages are kept for %s", span(keeps))
	}
	var back struct {
		Target string `json:"deadLetterTargetArn"`
	}
	_ = json.Unmarshal([]byte(dead["RedrivePolicy"]), &back) // as above
	switch {
	case back.Target != "" && back.Target == queue["QueueArn"]:
		f.add("limit", Bad, "remove the redrive policy of the dead-letter queue", "the dead-letter queue has a redrive policy that leads back here: what fails goes round until its retention ends")
	case dead["RedrivePolicy"] != "":
		f.add("limit", Warn, "remove its redrive policy", "the dead-letter queue has a redrive policy itself: looking at dead letters moves them on")
	}
	return f
}

// sqsCounts says what is in the queue, and what that may mean: SQS does not report who
// receives, or whether anything was ever sent.
func sqsCounts(f *findings, queue map[string]string, now time.Time) {
	created, _ := strconv.ParseInt(queue["CreatedTimestamp"], 10, 64) // 0 if unknown
	age := now.Sub(time.Unix(created, 0))
	visible, hidden, delayed := count(queue, ""), count(queue, "NotVisible"), count(queue, "Delayed")
	switch {
	case visible+hidden+delayed == "000" && created > 0 && age < newQueue:
		f.add("queue", Warn, "if messages were expected, compare its name, region and account with the sender's; a queue that Declare made under a wrong name looks like this",
			"empty, and created %s ago: nothing may ever have been sent here", span(age.Truncate(time.Second)))
	case hidden != "0" && hidden != "?":
		f.add("queue", OK, "", "%s visible, %s hidden, %s delayed; if none of your consumers holds the hidden ones, another program consumes this queue: check which principals have sqs:ReceiveMessage on it",
			visible, hidden, delayed)
	default:
		f.add("queue", OK, "", "%s visible, %s hidden, %s delayed", visible, hidden, delayed)
	}
}

// newQueue is how young an empty queue is that may have been made by mistake.
const newQueue = 24 * time.Hour

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
	n, _ := strconv.Atoi(text) // 0 if unknown
	return time.Duration(n) * time.Second
}
