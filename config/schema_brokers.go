package config

import "time"

// The kinds of brokers, as the on tag names them.
const (
	onRabbit = "rabbitmq"
	onKafka  = "kafka"
	onSQS    = "sqs"
	onMemory = "memory"
)

// brokerSection has the keys of all brokers; `on` says which of them a kind has. One struct instead of
// four, because the kind is known only after the url was read.
type brokerSection struct {
	URL            string        `key:"url" like:"amqps://app@rabbit.internal/shop" doc:"amqp://user@host[,host]/vhost, kafka://host[,host], sqs:// or mem://; amqps, kafkas for TLS."`
	User           string        `key:"user" on:"rabbitmq" def:"the URL's, else guest" doc:"Login, not percent-encoded."`
	Password       secret        `key:"password" on:"rabbitmq" like:"env:RABBIT_PW" doc:"Its password."`
	SASL           *saslSection  `key:"sasl" on:"kafka" doc:"Login."`
	TLS            *tlsSection   `key:"tls" on:"rabbitmq kafka" doc:"Certificates. The URL says whether TLS is used."`
	ConnectTimeout time.Duration `key:"connect_timeout" on:"rabbitmq kafka" def:"10s on RabbitMQ, 5s on Kafka" doc:"Bounds one attempt to connect."`
	Heartbeat      time.Duration `key:"heartbeat" on:"rabbitmq" def:"10s" doc:"Interval asked of the broker, whole seconds."`
	ConnectionName string        `key:"connection_name" on:"rabbitmq" def:"the program's name" doc:"Shown in RabbitMQ's management."`
	Management     string        `key:"management" on:"rabbitmq" like:"http://rabbit.internal:15672" doc:"Management API, to obey [delivery limits](transports/amqp.md#delivery-limits) set elsewhere."`
	RenewEvery     time.Duration `key:"renew_every" on:"rabbitmq" def:"never" doc:"Sends a changed password while connected, for tokens that expire."`
	ClientID       string        `key:"client_id" on:"kafka" def:"longshore" doc:"Shown in the broker's logs and quotas."`
	Rack           string        `key:"rack" on:"kafka" doc:"Read from a nearby replica."`
	MaxUnpacked    size          `key:"max_unpacked" on:"kafka" def:"64MiB" doc:"Largest unpacked size of one batch."`
	Publish        *sendSection  `key:"publish" on:"kafka" doc:"How dead letters and other messages are published."`
	Region         string        `key:"region" on:"sqs" def:"the queue's, else AWS_REGION and the SDK's files" like:"eu-west-1" doc:"Region."`
	Endpoint       string        `key:"endpoint" on:"sqs" doc:"URL of every call, for emulators and VPC endpoints."`
	AccessKeyID    string        `key:"access_key_id" on:"sqs" def:"the SDK's chain" doc:"Access key."`
	SecretKey      secret        `key:"secret_access_key" on:"sqs" like:"env:AWS_SECRET" doc:"Its secret."`
	SessionToken   secret        `key:"session_token" on:"sqs" doc:"Session token of temporary keys."`
}

// saslSection is how to log in to Kafka.
type saslSection struct {
	Mechanism string `key:"mechanism" oneof:"plain|scram_sha_256|scram_sha_512|oauthbearer" def:"plain" doc:"How to log in."`
	User      string `key:"user" doc:"User."`
	Password  secret `key:"password" like:"file:secrets/kafka" doc:"Password; with oauthbearer the token."`
}

// sendSection is what other readers of a topic notice of a publisher.
type sendSection struct {
	Compression []string      `key:"compression" def:"none" like:"[zstd, gzip]" doc:"The first that the broker knows: none, gzip, snappy, lz4 or zstd. Every consumer must read it."`
	Acks        string        `key:"acks" oneof:"all|leader" def:"all" doc:"Confirmation. leader can lose or duplicate records."`
	Partitioner string        `key:"partitioner" oneof:"murmur2|crc32|fnv1a" def:"murmur2" doc:"Hash of the key: Java's, librdkafka's or Sarama's. All writers of a topic must agree."`
	BatchBytes  int           `key:"batch_bytes" def:"1000012; larger records go alone" doc:"Largest batch before compression; if set, also the largest record."`
	Linger      time.Duration `key:"linger" def:"0s" doc:"Collects records for a batch."`
	Timeout     time.Duration `key:"timeout" def:"30s" doc:"Longest wait for a confirmation."`
}

// tlsSection is certificates by files, alike for every kind of broker.
type tlsSection struct {
	CAFile     string `key:"ca_file" def:"the system's authorities" doc:"PEM file of trusted authorities, read at the start."`
	CertFile   string `key:"cert_file" doc:"PEM file of the client's certificate, read at each connect."`
	KeyFile    string `key:"key_file" doc:"PEM file of its key."`
	ServerName string `key:"server_name" def:"each host's own" doc:"Name in the broker's certificate."`
}

// sourceSection is what a container consumes. A plain URL in the file sets URL alone.
type sourceSection struct {
	URL      string `key:"url" like:"kafka://k1:9092/orders?group=billing" doc:"The source as a URL, with only password beside it."`
	Password secret `key:"password" like:"env:RABBIT_PW" doc:"Password for url."`
	Broker   string `key:"broker" doc:"A name of brokers. Required without url."`

	Queue     string   `key:"queue" on:"rabbitmq sqs memory" like:"orders" doc:"Queue; on SQS also its URL or ARN."`
	Queues    []string `key:"queues" on:"rabbitmq" like:"[orders, returns]" doc:"Several, in place of queue."`
	Group     string   `key:"group" on:"kafka" like:"billing" doc:"Consumer group."`
	Share     string   `key:"share" on:"kafka" like:"billing" doc:"In place of group: a [share group](transports/kafka.md#share-groups). Only start, isolation, settle_linger and declare go with it."`
	Topics    []string `key:"topics" on:"kafka" like:"[orders]" doc:"Topics; regular expressions with pattern."`
	Topic     string   `key:"topic" on:"kafka" like:"orders" doc:"One, in place of topics."`
	Broadcast bool     `key:"broadcast" on:"rabbitmq kafka" def:"false" doc:"Every instance gets everything: on Kafka in place of group, without commits; on RabbitMQ of exchange, by a temporary queue."`
	Exchange  string   `key:"exchange" on:"rabbitmq" like:"prices" doc:"Exchange, with broadcast."`
	Kind      string   `key:"kind" oneof:"direct|fanout|topic|headers" on:"rabbitmq" def:"it must exist" doc:"With broadcast: declares the exchange, durable."`
	Keys      []string `key:"keys" on:"rabbitmq" def:"everything" like:"[eu.*]" doc:"With broadcast: routing keys, patterns on a topic exchange."`

	Declare *declareSection `key:"declare" on:"rabbitmq kafka sqs" def:"it must exist" doc:"Creates the source and its dead-letter destination if they are missing."`

	SettleLinger time.Duration `key:"settle_linger" on:"rabbitmq kafka sqs" def:"2ms on RabbitMQ, 1s on Kafka, 50ms on SQS" doc:"Longest delay before an ack is sent."`
	Prefetch     int           `key:"prefetch" none:"unlimited" on:"rabbitmq memory" def:"follows the workers" doc:"Most unsettled messages."`
	Consumers    string        `key:"consumers" oneof:"one_channel|per_worker" on:"rabbitmq" def:"one_channel" doc:"per_worker: [a consumer per worker](transports/amqp.md#a-consumer-per-worker)."`
	Exclusive    bool          `key:"exclusive" on:"rabbitmq" def:"false" doc:"Consumes alone."`
	SingleActive bool          `key:"single_active" on:"rabbitmq memory" def:"false" doc:"One consumer at a time; others stand by."`
	Priority     int           `key:"priority" on:"rabbitmq" def:"0" doc:"Consumer priority; higher ones are served first."`
	Tag          string        `key:"tag" on:"rabbitmq" def:"made up" doc:"Consumer tag."`
	Arguments    table         `key:"arguments" on:"rabbitmq" like:"{x-stream-offset: first}" doc:"Arguments of the consumer."`
	AutoAck      bool          `key:"auto_ack" on:"rabbitmq" def:"false" doc:"At most once: the broker forgets messages when sent."`
	Pull         bool          `key:"pull" on:"rabbitmq" def:"false" doc:"Fetches messages one by one."`
	PullInterval time.Duration `key:"pull_interval" on:"rabbitmq" def:"250ms" doc:"Pause after an empty queue was seen."`
	Key          string        `key:"key" on:"rabbitmq" like:"customer" def:"longshore-key" doc:"Header with the message's key, or routing-key."`
	DeadLettered bool          `key:"dead_lettered" on:"rabbitmq" def:"false" doc:"The queue has a dead-letter exchange that declare does not show."`

	Start            start         `key:"start" oneof:"earliest|latest" on:"kafka" def:"earliest" doc:"Where to read without a committed position: first record, last record, or from that time on."`
	OutOfRange       string        `key:"out_of_range" oneof:"earliest|latest|fail" on:"kafka" def:"earliest" doc:"Where to read when the position is no longer in the log."`
	OversizedBatch   string        `key:"oversized_batch" oneof:"reject|stop" on:"kafka" def:"reject" doc:"A batch beyond max_unpacked: dead-letter a record in its place, or stop reading there."`
	Protocol         string        `key:"protocol" oneof:"classic|consumer" on:"kafka" def:"classic" doc:"consumer is KIP-848's, Kafka 4."`
	InstanceID       string        `key:"instance_id" on:"kafka" doc:"Makes a static member; differs between instances."`
	Isolation        string        `key:"isolation" oneof:"read_committed|read_uncommitted" on:"kafka" def:"read_committed" doc:"Which records of transactions are read."`
	Pattern          bool          `key:"pattern" on:"kafka" def:"false" doc:"topics are regular expressions."`
	Window           int           `key:"window" on:"kafka" def:"4096" doc:"Records of a partition beyond the oldest unfinished one."`
	Members          int           `key:"members" on:"kafka" def:"1" doc:"Group members in this container."`
	Commit           string        `key:"commit" oneof:"by_load|after_each" on:"kafka" def:"by_load" doc:"by_load: after settle_linger or 500 records. after_each: [before the next record](transports/kafka.md#commit-after-each-record)."`
	RebalanceDrain   time.Duration `key:"rebalance_drain" on:"kafka" def:"5s, at most a quarter of rebalance_timeout" doc:"How long a departing partition waits for its handlers."`
	RebalanceTimeout time.Duration `key:"rebalance_timeout" on:"kafka" def:"60s" doc:"How long a rebalance waits for a member."`
	SessionTimeout   time.Duration `key:"session_timeout" on:"kafka" def:"45s" doc:"Silence after which a member is removed."`

	Transactional *transactionalSection `key:"transactional" on:"kafka" def:"off" doc:"[Transactions](transports/kafka.md#transactions); {} is enough. settle_linger is 100ms then."`

	BrowseCounts bool `key:"browse_counts" on:"rabbitmq sqs" def:"false" doc:"Allows browsing where it counts as a delivery: quorum queues, SQS queues that are FIFO or have a redrive policy."`

	VisibilityTimeout time.Duration `key:"visibility_timeout" on:"sqs" def:"the queue's" doc:"Lease in whole seconds up to 12h, extended until the message is settled."`
	MaxPollers        int           `key:"max_pollers" on:"sqs" def:"10" doc:"Most open long polls."`
	BatchByBatch      bool          `key:"batch_by_batch" on:"sqs" def:"false" doc:"Receives up to ten messages only after all of the last have been deleted or returned."`
	Envelope          string        `key:"envelope" oneof:"sns|eventbridge" on:"sqs" doc:"Wrapper of another service."`

	DeadLetter string `key:"dead_letter" on:"memory" doc:"Queue that takes rejected messages."`
	FIFO       bool   `key:"fifo" on:"memory" def:"false" doc:"Holds back a key while one of its messages is unsettled."`
	Partitions int    `key:"partitions" on:"memory" def:"0" doc:"Partitions messages by key."`
}

// transactionalSection is kafka.Transactional.
type transactionalSection struct {
	ID       string        `key:"id" def:"random" like:"pricing-0" doc:"Different for each instance, the same after a restart."`
	Timeout  time.Duration `key:"timeout" def:"10s" doc:"The broker aborts a transaction after it."`
	Records  int           `key:"records" def:"500" doc:"Finished records that do not wait for settle_linger."`
	MaxBytes size          `key:"max_bytes" def:"64MiB" doc:"The most published by handlers and not written yet."`
}

// declareSection is a pointer in its source: present and empty means "create it with defaults".
type declareSection struct {
	Type       string           `key:"type" oneof:"quorum|classic" on:"rabbitmq" def:"the virtual host's" doc:"Type of the queue."`
	Bindings   []bindingSection `key:"bindings" on:"rabbitmq" like:"[{exchange: shop, key: order.*, kind: topic}]" doc:"Bindings to exchanges."`
	Arguments  table            `key:"arguments" on:"rabbitmq" like:"{x-delivery-limit: 20}" doc:"Arguments of the queue."`
	Transient  bool             `key:"transient" on:"rabbitmq" def:"false" doc:"The queue does not survive a broker restart."`
	AutoDelete bool             `key:"auto_delete" on:"rabbitmq" def:"false" doc:"Deletes the queue with its last consumer."`

	Partitions int               `key:"partitions" on:"kafka" like:"12" doc:"Partitions of a created topic; required."`
	Replicas   int               `key:"replicas" on:"kafka" def:"the broker's" doc:"Replicas of a created topic."`
	Settings   map[string]string `key:"settings" on:"kafka" like:"{retention.ms: 86400000}" doc:"Settings of a created topic."`

	Attributes map[string]string `key:"attributes" on:"sqs" like:"{VisibilityTimeout: 60}" doc:"Attributes of the queue as SQS names them."`
	Tags       map[string]string `key:"tags" on:"sqs" doc:"Tags of a created queue."`
}

// bindingSection leads messages of an exchange to a declared queue.
type bindingSection struct {
	Exchange  string `key:"exchange" doc:"Exchange."`
	Key       string `key:"key" doc:"Routing key, pattern (topic), or weight (consistent hash)."`
	Kind      string `key:"kind" oneof:"direct|fanout|topic|headers|x-consistent-hash" def:"it must exist" doc:"Declares the exchange, durable."`
	Arguments table  `key:"arguments" doc:"Arguments of the binding, for headers exchanges."`

	ExchangeArguments table `key:"exchange_arguments" like:"{hash-header: customer}" doc:"Arguments of an exchange that kind declares."`
}
