package doctor

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore/transport"
)

// drainDefault is what GroupConfig.RebalanceDrain is without a setting.
const drainDefault = 5 * time.Second

// checkKafka judges the settings of a topic and of its group.
func checkKafka(m map[string]string, handler time.Duration) []Check {
	var f findings
	if m["records"] == "0" {
		f.add("queue", Warn, "if records should come, check the name and the cluster", "no record was ever written to this topic")
	}
	f.add("queue", OK, "", "%s, %s", several(m["partitions"], "partition"), several(m["replicas"], "replica"))
	kafkaReplicas(&f, number(m["replicas"]), number(m["min.insync.replicas"]))
	kafkaGroup(&f, m)
	if open := m["transactions.open"]; open != "" {
		f.add("queue", Warn, "end the transaction with its producer, or with kafka-transactions.sh abort; readers of committed records wait for it", "an open transaction holds up partitions: %s", open)
	}
	kafkaShare(&f, m)
	if handler > drainDefault {
		f.add("lease", Warn, "set GroupConfig.RebalanceDrain to what handlers take, and RebalanceTimeout to twice that or more",
			"a handler may take %s; a rebalance waits %s for it by default, then its record is also worked on elsewhere", span(handler), span(drainDefault))
	}
	if strings.Contains(m["cleanup.policy"], "compact") {
		f.add("limit", Warn, "consume from a topic with cleanup.policy=delete", "the topic is compacted: of records with one key only the last is certain to be delivered")
	}
	kafkaRetention(&f, m, handler)
	return f
}

// kafkaShare judges the settings of a share group.
func kafkaShare(f *findings, m map[string]string) {
	limit, locks := m["share.delivery.count.limit"], m["share.partition.max.record.locks"]
	if limit != "" && number(limit) < 5 {
		f.add("limit", Warn, "set share.delivery.count.limit of the group to 5 or more, or DeadLetter.To",
			"the share group archives a record after %s deliveries without a copy; each stop, crash and release counts as one", limit)
	}
	if locks != "" && number(locks) < 500 {
		f.add("limit", Warn, "raise share.partition.max.record.locks of the group", "the share group locks at most %s records of a partition, for all consumers together", locks)
	}
	if m["share.renew.acknowledge.enable"] == "false" {
		f.add("lease", Warn, "set share.renew.acknowledge.enable=true for the group", "the share group does not renew locks: a handler that takes longer than the lock loses its record")
	}
}

func kafkaReplicas(f *findings, replicas, inSync int) {
	switch {
	case replicas == 1:
		f.add("broker", Warn, "create topics with three replicas", "one replica: a disk that fails takes the records with it")
	case inSync == 1 && replicas > 1:
		f.add("broker", Warn, "set min.insync.replicas=2", "min.insync.replicas 1: what was confirmed can be lost with one broker")
	case inSync >= replicas && replicas > 1:
		f.add("broker", Warn, "set min.insync.replicas one lower", "min.insync.replicas %d of %d: with one broker down, publishing fails, also of dead letters", inSync, replicas)
	}
}

func kafkaGroup(f *findings, m map[string]string) {
	state, lag := m["group.state"], number(m["group.lag"])
	members, elsewhere := number(m["group.members"]), number(m["group.elsewhere"])
	switch {
	case state == "":
	case members == 0 && elsewhere > 0:
		wait := ""
		if lag > 0 {
			wait = ", and " + several(strconv.Itoa(lag), "record") + " wait"
		}
		read := "read"
		if elsewhere == 1 {
			read = "reads"
		}
		f.add("queue", Warn, "check the topics of the group's members", "no member of the group reads this topic, %d %s others%s", elsewhere, read, wait)
	case members == 0 && lag > 0:
		f.add("queue", Warn, "start a consumer", "%s and no member in the group (%s)", several(strconv.Itoa(lag), "record"), state)
	default:
		f.add("queue", OK, "", "group %s, %s, %s behind", state, several(m["group.members"], "member"), several(strconv.Itoa(lag), "record"))
	}
	if clients := m["group.clients"]; clients != "" {
		f.add("queue", Warn, "give each service a group of its own, and stop remaining instances of an earlier version; name versions by kafka.Config.ClientID",
			"different clients share its partitions: %s", clients)
	}
}

// standFor is how long the positions of a group are watched.
const standFor = 3 * time.Second

// standing looks whether partitions that lag and have a member get on.
func standing(ctx context.Context, s transport.SettingsReader, before map[string]string) ([]Check, error) {
	if before["group.behind"] == "" || number(before["group.members"]) == 0 {
		return nil, nil
	}
	t := time.NewTimer(standFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	after, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return stands(before["group.behind"], after["group.behind"]), nil
}

// stands compares the positions of two moments.
func stands(before, after string) []Check {
	var f findings
	later := strings.Split(after, ",")
	var same []string
	for one := range strings.SplitSeq(before, ",") {
		if slices.Contains(later, one) {
			partition, position, _ := strings.Cut(one, ":")
			if position == "-1" {
				position = "its beginning"
			}
			same = append(same, partition+" at "+position)
		}
	}
	if len(same) > 0 {
		f.add("queue", Warn, "longshore ctl why CONTAINER names the record, if it is one that blocks; longshore ctl dead-letter or retry-now moves it",
			"records wait and the group's position does not move: partition %s, for %v or longer", strings.Join(same, ", "), standFor)
	}
	return f
}

func kafkaRetention(f *findings, m map[string]string, handler time.Duration) {
	const forever = time.Duration(1<<63 - 1)
	keeps := forever
	if ms, err := strconv.ParseInt(m["retention.ms"], 10, 64); err == nil && ms >= 0 {
		keeps = time.Duration(min(ms, int64(forever/time.Millisecond))) * time.Millisecond
	} else if err != nil {
		return // unknown
	}
	if !strings.Contains(m["cleanup.policy"], "delete") {
		keeps = forever
	}
	switch {
	case keeps == forever:
		f.add("retention", OK, "", "records are kept")
	case keeps < 24*time.Hour || keeps < 2*handler:
		f.add("retention", Warn, "set retention.ms to days", "records are deleted after %s, consumed or not: an outage of that length loses them", span(keeps))
	default:
		f.add("retention", OK, "", "records are kept for %s", span(keeps))
	}
	positions := time.Duration(number(m["offsets.retention.minutes"])) * time.Minute
	if positions > 0 && positions < keeps {
		f.add("retention", Warn, "set offsets.retention.minutes of the brokers to more than the topic's retention",
			"positions of a group without members are forgotten after %s, records later: the group then begins again at GroupConfig.Start", span(positions))
	}
}

// several is a number and what is counted.
func several(n, one string) string {
	if n == "1" {
		return n + " " + one
	}
	return n + " " + one + "s"
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // 0 if unknown
	return n
}
