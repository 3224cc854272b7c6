package urls

import (
	"net/url"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// kafka://[user:password@]host[:port][,host…]/topic[,topic…]?group=name; kafkas for
// TLS. Without a group it takes broadcast=true.
func kafkaScheme() scheme {
	return scheme{names: []string{"kafka", "kafkas"}, form: "kafka://host,host/orders?group=billing",
		params: []string{"group", "share", "broadcast", "start", "protocol", "sasl", "window", "transactional", "partitions", "compression", "acks", "batch_bytes", "partitioner"}, open: openKafka}
}

func openKafka(a *address, o Options) (transport.Source, error) {
	place := a.place
	cfg := kafka.Config{TLS: a.scheme == "kafkas"}
	if at := strings.LastIndexByte(place, '@'); at >= 0 {
		user, password, _ := strings.Cut(place[:at], ":")
		place = place[at+1:]
		var err1, err2 error
		cfg.SASL.User, err1 = url.PathUnescape(user)
		password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			a.problems.Bad("", "percent-encode / ? # @ : % in both", "the user or the password is not percent-encoded")
		}
		cfg.SASL.Password = transport.Static(password)
	}
	if !o.Password.IsZero() {
		cfg.SASL.Password = o.Password
	}
	a.spell("sasl") // as in longshore.yaml, or as Kafka writes it
	cfg.SASL.Mechanism = mechanisms()[a.choice("sasl", "plain", "scram-sha-256", "scram-sha-512", "oauthbearer")]
	hosts, path, _ := strings.Cut(place, "/")
	var topics []string
	for t := range strings.SplitSeq(path, ",") {
		name, err := url.PathUnescape(t)
		if err != nil {
			bad := problem.Bad("", "write %25 for a percent sign", "a topic is not percent-encoded").Of(a.problems.Op, "")
			bad.Code = longshore.CodeBadAddress
			a.problems.Join(bad)
		}
		if name != "" {
			topics = append(topics, name)
		}
	}
	if len(topics) == 0 && a.problems.Len() == 0 {
		a.problems.Add(problem.Bad("", "write it after the address and a slash", "no topic is named").OfKind(problem.Missing))
	}
	cfg.Outlet = a.kafkaOutlet()
	group, start := a.take("group"), a.start()
	protocol := kafka.Classic
	if a.choice("protocol", "classic", "consumer") == "consumer" {
		protocol = kafka.Consumer
	}
	shared := a.take("share")
	everybody := a.choice("broadcast", "true", "false") == "true"
	window, tx := a.number("window"), a.transactional()
	if o.DeadLetters && len(topics) > 0 {
		if len(topics) > 1 {
			a.problems.Bad("", "name one", "dead letters are read from one topic, not from several")
		}
		group, everybody, shared, tx = DeadLetterGroup(topics[0]), false, "", nil
	}
	declare := kafka.Declare{Partitions: int32(min(a.number("partitions"), 1<<20))} //nolint:gosec // bounded
	b := kafka.New(strings.Split(hosts, ","), cfg)
	a.onlyInGroup(tx, shared != "" || everybody)
	switch {
	case shared != "" && (group != "" || everybody):
		a.bad(problem.Conflicting, "share", "does not go with a group or a broadcast", "leave one of them out")
	case shared != "":
		return b.ShareGroup(shared, topics, kafka.ShareConfig{Start: start, Declare: declare}), nil
	case group != "" && everybody:
		a.bad(problem.Conflicting, "broadcast", "does not go with a group", "leave one of them out")
	case group == "" && !everybody && !o.NoConsumer:
		a.bad(problem.Missing, "group", "is missing", "add ?group=NAME, under which offsets are committed, ?share=NAME for a share group, or ?broadcast=true to read everything without a group")
	case group == "":
		return b.Broadcast(topics, kafka.BroadcastConfig{Start: start, Window: window, Declare: declare}), nil
	}
	consume := kafka.GroupConfig{Start: start, Protocol: protocol, Window: window, Transactional: tx, Declare: declare}
	if o.DeadLetters {
		consume.Start, consume.SessionTimeout = kafka.Earliest, replaySession
	}
	return b.Group(group, topics, consume), nil
}

// transactional is true, or a transactional id.
func (a *address) transactional() *kafka.Transactional {
	switch id := a.take("transactional"); id {
	case "", "false":
		return nil
	case "true":
		return &kafka.Transactional{}
	default:
		return &kafka.Transactional{ID: id}
	}
}

// onlyInGroup refuses transactions where there is no group.
func (a *address) onlyInGroup(tx *kafka.Transactional, other bool) {
	if tx != nil && other {
		a.bad(problem.Conflicting, "transactional", "does not go with a share group or a broadcast", "use a group, whose positions are a part of the transaction")
	}
}

// kafkaOutlet takes what concerns publishing: what others read is for them to choose.
func (a *address) kafkaOutlet() (cfg kafka.PublisherConfig) {
	if name := a.choice("compression", kafka.Codecs()...); name != "" {
		if c, known := kafka.Codec(name); known {
			cfg.Compression = append(cfg.Compression, c)
		}
	}
	if a.choice("acks", "all", "leader") == "leader" {
		cfg.Acks = kafka.AcksLeader
	}
	cfg.MaxBatchBytes = int32(min(a.number("batch_bytes"), 1<<30)) //nolint:gosec // bounded
	if hash := a.choice("partitioner", kafka.Hashes()...); hash != "" {
		cfg.Partitioner = kafka.PartitionBy(hash)
	}
	return cfg
}

// DeadLetterGroup is the group that remembers what was replayed from a topic.
func DeadLetterGroup(topic string) string { return "longshore-dlq." + topic }

// start takes the place to start at.
func (a *address) start() kafka.Start {
	switch v := a.take("start"); v {
	case "", "earliest":
	case "latest":
		return kafka.Latest
	default:
		t, err := time.Parse(time.RFC3339, v)
		if err == nil {
			return kafka.StartAt(t)
		}
		a.noSuch("start", v, []string{"earliest", "latest", "a time such as 2026-01-02T15:04:05Z"})
	}
	return kafka.Earliest
}

// replaySession is short: who replays again after a kill has to wait for it.
const replaySession = 10 * time.Second

func mechanisms() map[string]kafka.Mechanism {
	return map[string]kafka.Mechanism{"plain": kafka.Plain, "scram-sha-256": kafka.ScramSHA256, "scram-sha-512": kafka.ScramSHA512, "oauthbearer": kafka.OAuthBearer}
}
