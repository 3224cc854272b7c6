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
	URL            string        `key:"url" like:"amqps://app@rabbit.internal/shop" doc:"amqp://user@host[,host]/vhost, kafka://host[,host], sqs:// or mem://; amqps and kafkas for TLS."`
	User           string        `key:"user" on:"rabbitmq" def:"the URL's, else guest" doc:"Login, as it is: nothing is percent-encoded here."`
	Password       secret        `key:"password" on:"rabbitmq" like:"env:RABBIT_PW" doc:"Its password."`
	SASL           *saslSection  `key:"sasl" on:"kafka" doc:"Login."`
	TLS            *tlsSection   `key:"tls" on:"rabbitmq kafka" doc:"Certificates. The URL says whether TLS is used."`
	ConnectTimeout time.Duration `key:"connect_timeout" on:"rabbitmq kafka" def:"10s on RabbitMQ, 5s on Kafka" doc:"Bounds one attempt to connect."`
	Heartbeat      time.Duration `key:"heartbeat" on:"rabbitmq" def:"10s" doc:"Interval asked of the broker, whole seconds."`
	ConnectionName string        `key:"connection_name" on:"rabbitmq" def:"the program's name" doc:"Shown in RabbitMQ's management."`
	Management     string        `key:"management" on:"rabbitmq" like:"http://rabbit.internal:15672" doc:"RabbitMQ's management API, asked with the same login, to know and obey a delivery limit that a policy or another program has set."`
	RenewEvery     time.Duration `key:"renew_every" on:"rabbitmq" def:"never" doc:"Asks for the password again while connected and sends a changed one, for tokens that expire."`
	ClientID       string        `key:"client_id" on:"kafka" def:"longshore" doc:"Shown in the broker's logs and quotas."`
	Rack           string        `key:"rack" on:"kafka" doc:"Where this client is, to read from a replica nearby."`
	MaxUnpacked    size          `key:"max_unpacked" on:"kafka" def:"64MiB" doc:"The most that one compressed batch may unpack to."`
	Publish        *sendSection  `key:"publish" on:"kafka" doc:"How dead letters are written, and what else is sent by this broker."`
	Region         string        `key:"region" on:"sqs" def:"the queue's, else AWS_REGION and the SDK's files" like:"eu-west-1" doc:"Region."`
	Endpoint       string        `key:"endpoint" on:"sqs" doc:"URL that every call goes to, for emulators and VPC endpoints."`
	AccessKeyID    string        `key:"access_key_id" on:"sqs" def:"the SDK's chain" doc:"Access key, in place of environment, profile or the machine's role."`
	SecretKey      secret        `key:"secret_access_key" on:"sqs" like:"env:AWS_SECRET" doc:"Its secret."`
	SessionToken   secret        `key:"session_token" on:"sqs" doc:"Its session token, if it is a temporary one."`
}

// saslSection is how to log in to Kafka.
type saslSection struct {
	Mechanism string `key:"mechanism" oneof:"plain|scram_sha_256|scram_sha_512|oauthbearer" def:"plain" doc:"How to log in."`
	User      string `key:"user" doc:"User."`
	Password  secret `key:"password" like:"file:secrets/kafka" doc:"Password; with oauthbearer the token. Asked for at each login."`
}

// sendSection is what other readers of a topic notice of a publisher.
type sendSection struct {
	Compression []string      `key:"compression" def:"none" like:"[zstd, gzip]" doc:"Of batches, the first that the broker knows: none, gzip, snappy, lz4 or zstd. Each consumer must be able to read it."`
	Acks        string        `key:"acks" oneof:"all|leader" def:"all" doc:"Whose confirmation counts. With leader a record is lost with a leader that dies, and can be written twice."`
	Partitioner string        `key:"partitioner" oneof:"murmur2|crc32|fnv1a" def:"murmur2" doc:"Hash of the key that chooses the partition: that of Java's clients, of librdkafka or of Sarama. All writers of a topic must agree."`
	BatchBytes  int           `key:"batch_bytes" def:"1000012; larger records go alone" doc:"Largest batch before compression; where it is set also the largest record."`
	Linger      time.Duration `key:"linger" def:"0s" doc:"Collects records for a batch."`
	Timeout     time.Duration `key:"timeout" def:"30s" doc:"How long one record may take until it is confirmed; its outcome is unknown then."`
}

// tlsSection is certificates by files, alike for every kind of broker.
type tlsSection struct {
	CAFile     string `key:"ca_file" def:"the system's authorities" doc:"PEM file of the authorities that are trusted, read at the start."`
	CertFile   string `key:"cert_file" doc:"PEM file of the client's certificate. Read at each connect, so that a renewed one is used from the next connection on."`
	KeyFile    string `key:"key_file" doc:"PEM file of its key."`
	ServerName string `key:"server_name" def:"each host's own" doc:"Name in the broker's certificate."`
}

// sourceSection is what a container consumes. A plain URL in the file sets URL alone.
type sourceSection struct {
	URL      string `key:"url" like:"kafka://k1:9092/orders?group=billing" doc:"The whole source as a URL, so that the password can be kept apart. Only password goes with it."`
	Password secret `key:"password" like:"env:RABBIT_PW" doc:"Password of the user in url."`
	Broker   string `key:"broker" doc:"A name of brokers. Needed without url."`

	Queue     string   `key:"queue" on:"rabbitmq sqs memory" like:"orders" doc:"Queue; on SQS also its URL or ARN."`
	Queues    []string `key:"queues" on:"rabbitmq" like:"[orders, returns]" doc:"In place of queue: several at once, with the same settings."`
	Group     string   `key:"group" on:"kafka" like:"billing" doc:"Consumer group, under which offsets are committed."`
	Share     string   `key:"share" on:"kafka" like:"billing" doc:"In place of group: a share group (Kafka 4.2), a queue whose consumers share each partition. Of the settings below start, isolation, settle_linger and declare go with it."`
	Topics    []string `key:"topics" on:"kafka" like:"[orders]" doc:"Topics; regular expressions with pattern."`
	Topic     string   `key:"topic" on:"kafka" like:"orders" doc:"In place of topics: one topic."`
	Broadcast bool     `key:"broadcast" on:"rabbitmq kafka" def:"false" doc:"Every instance gets everything. On Kafka in place of group, and nothing is committed; on RabbitMQ of exchange in place of queue, by a queue of its own that goes away with it."`
	Exchange  string   `key:"exchange" on:"rabbitmq" like:"prices" doc:"Exchange, with broadcast."`
	Kind      string   `key:"kind" oneof:"direct|fanout|topic|headers" on:"rabbitmq" def:"it must exist" doc:"With broadcast: declares the exchange, durable."`
	Keys      []string `key:"keys" on:"rabbitmq" def:"everything" like:"[eu.*]" doc:"With broadcast: routing keys, patterns on a topic exchange."`

	Declare *declareSection `key:"declare" on:"rabbitmq kafka sqs" def:"it must exist" doc:"Creates the source and its dead-letter destination if they are missing."`

	SettleLinger time.Duration `key:"settle_linger" on:"rabbitmq kafka sqs" def:"2ms on RabbitMQ, 1s on Kafka, 50ms on SQS" doc:"Longest wait of an accepted ack before it is sent."`
	Prefetch     int           `key:"prefetch" none:"unlimited" on:"rabbitmq memory" def:"follows the workers" doc:"Most messages that are sent ahead of settling."`
	Consumers    string        `key:"consumers" oneof:"one_channel|per_worker" on:"rabbitmq" def:"one_channel" doc:"per_worker has a consumer with its own channel and prefetch (then 2) for each worker, one_channel one for all workers. per_worker refuses an order, exclusive, single_active and pull."`
	Exclusive    bool          `key:"exclusive" on:"rabbitmq" def:"false" doc:"Consumes alone."`
	SingleActive bool          `key:"single_active" on:"rabbitmq memory" def:"false" doc:"The queue serves one consumer at a time, the others stand by."`
	Priority     int           `key:"priority" on:"rabbitmq" def:"0" doc:"Consumer priority; higher ones are served first."`
	Tag          string        `key:"tag" on:"rabbitmq" def:"made up" doc:"Consumer tag."`
	Arguments    table         `key:"arguments" on:"rabbitmq" like:"{x-stream-offset: first}" doc:"Arguments of the consumer."`
	AutoAck      bool          `key:"auto_ack" on:"rabbitmq" def:"false" doc:"The broker forgets messages when it has sent them: they are lost with the process."`
	Pull         bool          `key:"pull" on:"rabbitmq" def:"false" doc:"Fetches messages one by one."`
	PullInterval time.Duration `key:"pull_interval" on:"rabbitmq" def:"250ms" doc:"Pause after an empty queue was seen."`
	Key          string        `key:"key" on:"rabbitmq" like:"customer" def:"longshore-key" doc:"Header that holds a message's key, with or without header: in front; routing-key takes the routing key."`
	DeadLettered bool          `key:"dead_lettered" on:"rabbitmq" def:"false" doc:"The queue has a dead-letter exchange which declare does not show."`

	Start            start         `key:"start" oneof:"earliest|latest" on:"kafka" def:"earliest" doc:"Where a partition without a committed position is read from: its first or last record, or the first one of that time or later."`
	OutOfRange       string        `key:"out_of_range" oneof:"earliest|latest|fail" on:"kafka" def:"earliest" doc:"What happens when a position is not in the log any more."`
	OversizedBatch   string        `key:"oversized_batch" oneof:"reject|stop" on:"kafka" def:"reject" doc:"What happens to a batch that unpacks to more than the broker's max_unpacked: a record in its place goes to the dead-letter destination, or the container stops reading there."`
	Protocol         string        `key:"protocol" oneof:"classic|consumer" on:"kafka" def:"classic" doc:"consumer is KIP-848's, Kafka 4."`
	InstanceID       string        `key:"instance_id" on:"kafka" doc:"Makes a static member; differs between instances."`
	Isolation        string        `key:"isolation" oneof:"read_committed|read_uncommitted" on:"kafka" def:"read_committed" doc:"Which records of transactions are read."`
	Pattern          bool          `key:"pattern" on:"kafka" def:"false" doc:"topics are regular expressions."`
	Window           int           `key:"window" on:"kafka" def:"4096" doc:"Records of one partition in work beyond the oldest that is not done."`
	Members          int           `key:"members" on:"kafka" def:"1" doc:"Members of the group in this one container, each with its own connections and partitions."`
	Commit           string        `key:"commit" oneof:"by_load|after_each" on:"kafka" def:"by_load" doc:"by_load commits after settle_linger or 500 records; after_each commits every record that is done before the next is handed out."`
	RebalanceDrain   time.Duration `key:"rebalance_drain" on:"kafka" def:"5s, at most a quarter of rebalance_timeout" doc:"How long a partition that goes to another member waits for its running handlers."`
	RebalanceTimeout time.Duration `key:"rebalance_timeout" on:"kafka" def:"60s" doc:"How long the group waits for a member."`
	SessionTimeout   time.Duration `key:"session_timeout" on:"kafka" def:"45s" doc:"After how much silence a member is dead."`

	BrowseCounts bool `key:"browse_counts" on:"rabbitmq sqs" def:"false" doc:"Allows to look into the queue where looking counts as a delivery: quorum queues, SQS queues that are FIFO or have a redrive policy."`

	VisibilityTimeout time.Duration `key:"visibility_timeout" on:"sqs" def:"the queue's" doc:"Lease of a message, whole seconds up to 12h; it is extended until the message is settled."`
	MaxPollers        int           `key:"max_pollers" on:"sqs" def:"10" doc:"Most long polls that are open."`
	BatchByBatch      bool          `key:"batch_by_batch" on:"sqs" def:"false" doc:"Receives the next messages, ten at the most, only after all of the last have been deleted or returned."`
	Envelope          string        `key:"envelope" oneof:"sns|eventbridge" on:"sqs" doc:"What another service wraps around the messages."`

	DeadLetter string `key:"dead_letter" on:"memory" doc:"Queue that takes rejected messages."`
	FIFO       bool   `key:"fifo" on:"memory" def:"false" doc:"Holds back the messages of a key while one of them is unsettled."`
	Partitions int    `key:"partitions" on:"memory" def:"0" doc:"Spreads messages over partitions by their key."`
}

// declareSection is a pointer in its source: present and empty means "create it with defaults".
type declareSection struct {
	Type       string           `key:"type" oneof:"quorum|classic" on:"rabbitmq" def:"the virtual host's" doc:"Type of the queue."`
	Bindings   []bindingSection `key:"bindings" on:"rabbitmq" like:"[{exchange: shop, key: order.*, kind: topic}]" doc:"What leads messages of exchanges to the queue."`
	Arguments  table            `key:"arguments" on:"rabbitmq" like:"{x-delivery-limit: 20}" doc:"Arguments of the queue."`
	Transient  bool             `key:"transient" on:"rabbitmq" def:"false" doc:"The queue does not survive a restart of the broker."`
	AutoDelete bool             `key:"auto_delete" on:"rabbitmq" def:"false" doc:"The queue goes away with its last consumer."`

	Partitions int               `key:"partitions" on:"kafka" like:"12" doc:"Partitions of a created topic; needed."`
	Replicas   int               `key:"replicas" on:"kafka" def:"the broker's" doc:"Replicas of a created topic."`
	Settings   map[string]string `key:"settings" on:"kafka" like:"{retention.ms: 86400000}" doc:"Settings of a created topic."`

	Attributes map[string]string `key:"attributes" on:"sqs" like:"{VisibilityTimeout: 60}" doc:"Attributes of the queue as SQS names them."`
	Tags       map[string]string `key:"tags" on:"sqs" doc:"Tags of a created queue."`
}

// bindingSection leads messages of an exchange to a declared queue.
type bindingSection struct {
	Exchange  string `key:"exchange" doc:"Exchange."`
	Key       string `key:"key" doc:"Routing key, the pattern of a topic exchange, or the weight at a consistent-hash exchange."`
	Kind      string `key:"kind" oneof:"direct|fanout|topic|headers|x-consistent-hash" def:"it must exist" doc:"Declares the exchange, durable."`
	Arguments table  `key:"arguments" doc:"Arguments of the binding, for headers exchanges."`

	ExchangeArguments table `key:"exchange_arguments" like:"{hash-header: customer}" doc:"Arguments of an exchange that kind declares."`
}
