package config

import "strings"

// This file finds what a section lacks, and settings of the file that exclude each other but
// have no counterpart in Go. The constructors find the rest.

// needs reports what a source mapping lacks; complete means that it lacks nothing.
func (l *loader) needs(path string, s *sourceSection) (complete bool) {
	b := l.file.Brokers[s.Broker]
	if s.URL != "" || b == nil {
		return true
	}
	complete = true
	missing := func(key, text, hint string) {
		complete = false
		if !l.broken[join(path, key)] {
			l.report(l.place(path), Problem{Code: CodeMissing, Path: join(path, key), Text: text, Hint: hint})
		}
	}
	switch kind := kindOf(b.URL); kind {
	case onKafka:
		l.alone(path, s, kind)
		if s.Group == "" && s.Share == "" && !s.Broadcast {
			missing("group", "source has no consumer group", "add group: NAME; offsets are committed under it")
		}
		if len(s.Topics) == 0 {
			missing("topics", "source has no topics", "add topics: [NAME]")
		}
		if s.Declare != nil && s.Declare.Partitions == 0 {
			missing("declare", "declare has no partitions", "add partitions: 12, or leave declare out if the topics exist")
		}
	case "":
	default:
		l.alone(path, s, kind)
		switch {
		case s.Broadcast && s.Exchange == "":
			missing("exchange", "source has no exchange", "add exchange: NAME")
		case s.Broadcast || s.Queue != "" || len(s.Queues) > 0:
		case l.has(join(path, "exchange")): // reported already
			complete = false
		default:
			missing("queue", "source has no queue", "add queue: NAME")
		}
		if d := s.Declare; kind == onRabbit && !s.Broadcast && d != nil && d.Type == "" && !l.broken[joinAll(path, "declare", "type")] && len(d.Bindings) == 0 && len(d.Arguments) == 0 && !d.Transient && !d.AutoDelete {
			missing("declare", "declare is empty", "add type: quorum, or leave declare out if the queue exists")
		}
	}
	return complete
}

// alone reports settings of another way to consume than the one chosen.
func (l *loader) alone(path string, s *sourceSection, kind string) {
	refuse := func(other, why string, keys ...string) {
		for _, key := range keys {
			if e, ok := l.at[join(path, key)]; ok {
				l.report(l.spotOfEntry(e), Problem{Code: CodeOutOfRange, Path: join(path, key), Text: key + " does not go with " + other + ": " + why,
					Hint: "leave " + key + " out, or " + other})
			}
		}
	}
	switch {
	case s.Broadcast && kind == onKafka:
		refuse("broadcast", "every instance reads everything, without a group", "group", "share", "protocol", "instance_id", "pattern", "settle_linger", "transactional", "rebalance_drain", "rebalance_timeout", "session_timeout")
	case s.Share != "" && kind == onKafka:
		refuse("share", "the consumers of a share group share each partition", "group", "protocol", "instance_id", "pattern", "window", "out_of_range", "oversized_batch", "transactional", "rebalance_drain", "rebalance_timeout", "session_timeout")
	case s.Broadcast:
		refuse("broadcast", "every instance has a queue of its own on the exchange", "queue", "queues", "declare", "consumers", "exclusive", "single_active", "priority", "tag", "arguments", "pull", "pull_interval", "dead_lettered", "browse_counts")
	case kind == onRabbit:
		if len(s.Queues) > 0 {
			refuse("queues", "it would be ignored", "queue")
		}
		for _, key := range []string{"exchange", "kind", "keys"} {
			if e, ok := l.at[join(path, key)]; ok {
				l.report(l.spotOfEntry(e), Problem{Code: CodeOutOfRange, Path: join(path, key), Text: key + " does not go with a queue: it belongs to a broadcast",
					Hint: "add broadcast: true, or write declare: {bindings: [{exchange: NAME}]} to bind the queue to an exchange"})
			}
		}
	}
}

// goTogether reports settings that exclude each other.
func (l *loader) goTogether(path string, s *containerSection) {
	if s.TwoStepStop && !s.isGroup() {
		at := join(path, "two_step_stop")
		l.report(l.spotOfEntry(l.at[at]), Problem{Code: CodeMissing, Path: at, Text: "two_step_stop is set without sources", Hint: "write sources: {NAME: …}, also for one, or leave two_step_stop out"})
	}
	if d := s.DeadLetter; d != nil && !s.isGroup() && strings.Contains(d.To, sourceWord) {
		at := joinAll(path, "dead_letter", "to")
		l.report(l.place(at), Problem{Code: CodeBadValue, Path: at, Text: "dead_letter.to has " + sourceWord + ", and the container has one source", Hint: "write the name out; " + sourceWord + " is for containers with sources"})
	}
	if d := s.DeadLetter; d != nil && d.Via != "" && d.To == "" {
		at := joinAll(path, "dead_letter", "via")
		l.report(l.spotOfEntry(l.at[at]), Problem{Code: CodeMissing, Path: at, Text: "dead_letter.via is set without to", Hint: "add to: NAME, the place on that broker, or leave via out"})
	} else if d != nil && d.To == "" && d.Policy == "" && !l.brokenBelow(join(path, "dead_letter")) {
		l.report(l.place(join(path, "dead_letter")), Problem{Code: CodeMissing, Path: join(path, "dead_letter"), Text: "dead_letter is empty",
			Hint: "add to: NAME, or policy: native, keep or discard"})
	}
	if s.Throttle == nil {
		return
	}
	at := join(path, "throttle")
	if r := s.Throttle.Rate; r != nil && *r < 0 {
		l.report(l.place(join(at, "rate")), Problem{Code: CodeOutOfRange, Path: join(at, "rate"), Text: "throttle.rate is negative", Hint: "it must be 0 or more; 0 lets nothing through, and no rate means no limit"})
	}
	k := s.Throttle.PerKey
	if k == nil || l.brokenBelow(join(at, "per_key")) {
		return
	}
	if (k.Permits == nil) == (k.Rate == nil) {
		l.report(l.place(join(at, "per_key")), Problem{Code: CodeMissing, Path: join(at, "per_key"), Text: "throttle.per_key needs either permits or rate", Hint: "give one of the two"})
	}
}
