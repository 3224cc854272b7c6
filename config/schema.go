package config

import "time"

// The types of this file and its neighbours are the shape of the file. Tags:
//
//	key    name in the file
//	doc    meaning, for the reference
//	def    what absent means
//	none   a word that stands for -1
//	oneof  the words that are known, separated by |
//	on     the kinds of brokers that have it, separated by blanks; empty: all
//	whole  taken from the container or from defaults, never mixed
//	own    not in defaults
//	like   an example, for the reference and for hints

// The sections of the file. The tags are the only description of a key; decoder, defaults in show,
// variables, reference page and suggestions read them:
//
//	key    name in the file                    doc    sentence of the reference page
//	def    default, for people                 none   word for "off", -1 in Go
//	like   an example                          oneof  known words
//	on     kinds of brokers that have it       whole  a container's replaces that of defaults
//	own    not taken from defaults
//
// root is the whole file.
type root struct {
	Version    int                          `key:"version" def:"1" doc:"Version of this format."`
	Brokers    map[string]*brokerSection    `key:"brokers" doc:"Brokers by name. Optional: a source may be a URL."`
	Lifecycle  lifecycleSection             `key:"lifecycle" doc:"Start and stop of the whole process."`
	Admin      *adminSection                `key:"admin" doc:"The admin API for longshore ctl. admin: {} serves it with its defaults."`
	Telemetry  telemetrySection             `key:"telemetry" doc:"Metrics and traces of all containers."`
	Defaults   *containerSection            `key:"defaults" doc:"Fields of a container, except source, for all containers."`
	Containers map[string]*containerSection `key:"containers" doc:"Containers by name."`
	Bridge     map[string]*routeSection     `key:"bridge" doc:"Routes of longshore bridge by name."`
}

// lifecycleSection bounds the stop of the process.
type lifecycleSection struct {
	StopTimeout time.Duration `key:"stop_timeout" def:"what the components need, at least 25s" like:"40s" doc:"Bound of the whole stop. With less time than their budgets, components share it in proportion."`
}

// adminSection mirrors admin.Config; a pointer to it is nil where no API is served.
type adminSection struct {
	Listen    string            `key:"listen" def:"127.0.0.1:8391" doc:"Host and port."`
	Operators map[string]secret `key:"operators" like:"{anna: env:ANNA_TOKEN}" doc:"Who may look and change, with tokens of at least 16 characters. None, on loopback: a token is written to token_file."`
	Viewers   map[string]secret `key:"viewers" like:"{wall: file:secrets/wall}" doc:"Who may look."`
	Hosts     []string          `key:"hosts" like:"[orders.internal]" doc:"Host names of the API besides listen, localhost and plain addresses."`
	TLS       *adminTLSSection  `key:"tls" doc:"Serves https. Absent: http."`
	TokenFile string            `key:"token_file" def:"in the user's runtime directory" doc:"The token that is generated without operators."`
}

// adminTLSSection is the certificate of the admin API, which is apart from those of brokers.
type adminTLSSection struct {
	CertFile string `key:"cert_file" like:"tls/admin.pem" doc:"PEM file of the server's certificate, read at each handshake. Required, with key_file."`
	KeyFile  string `key:"key_file" like:"tls/admin.key" doc:"PEM file of its key."`
}

// containerSection mirrors container.Config and the middlewares that need no code. Times and numbers are
// zero where the file says nothing.
type containerSection struct {
	Source *sourceSection `key:"source" own:"true" whole:"true" like:"amqp://localhost/?queue=orders" doc:"A URL, or a mapping as below."`

	Sources     map[string]*sourceSection `key:"sources" own:"true" whole:"true" like:"{orders: \"sqs://orders\", returns: {broker: aws, queue: returns}}" doc:"Several sources by name, in place of source: a container of these settings for each, called CONTAINER/NAME, with one handler, one breaker and one throttle for all. Each can be paused and stopped alone; workers are per source. {source} in dead_letter.to stands for NAME."`
	TwoStepStop bool                      `key:"two_step_stop" own:"true" def:"false" doc:"With sources: the stop waits drain_timeout, lets go on what has a phase between containers and relays, and waits the same time again before it cancels handlers."`

	Workers   workersSection    `key:"workers" doc:"How many handler calls run at once."`
	Autoscale *autoscaleSection `key:"autoscale" whole:"true" doc:"What moves the count between workers.min and workers.max."`
	Lookahead int               `key:"lookahead" none:"none" def:"as many as workers, at least 8" doc:"Deliveries held beyond the workers."`
	MaxBytes  size              `key:"max_bytes" def:"64MiB" doc:"The intake stops while the bodies held exceed it. One larger message alone passes."`
	Order     order             `key:"order" oneof:"by_key|by_partition|unordered" def:"by_key on Kafka and SQS FIFO, else unordered" doc:"Which messages are handled one after the other. header:NAME: those with the same value of a header."`

	Redelivery redeliverySection  `key:"redelivery" doc:"What happens after a handler failed."`
	DeadLetter *deadLetterSection `key:"dead_letter" whole:"true" doc:"What happens after the last failure. Required on Kafka; elsewhere absent means native if the broker has a known destination, else keep."`
	Deletion   string             `key:"deletion" oneof:"on_success|always|never|no_redrive" def:"by redelivery, dead_letter and settle" doc:"One word in place of redelivery.max_attempts, dead_letter and settle: see [deletion policies](transports/sqs.md#deletion-policies)."`

	Throttle *throttleSection `key:"throttle" doc:"Limits that longshore ctl throttle can change, also if absent."`
	Breaker  *breakerSection  `key:"breaker" doc:"Stops the intake while a dependency of the handler is down. breaker: {} uses the defaults."`
	Dedupe   *dedupeSection   `key:"dedupe" doc:"Acks messages that this process has just handled. No guarantee. dedupe: {} uses the defaults."`
	Timeout  time.Duration    `key:"timeout" def:"none" like:"30s" doc:"Ends the context of a handler call."`
	Decode   bool             `key:"decode" def:"false" doc:"Unpacks bodies by their content encoding before the handler."`

	DecodeMaxBytes size `key:"decode_max_bytes" def:"64MiB" doc:"With decode: the largest unpacked body. A larger one is dead-lettered."`
	DecodeMaxHeld  size `key:"decode_max_held" def:"256MiB" doc:"With decode: all unpacked bodies together; others wait. At least decode_max_bytes."`
	LogEach        bool `key:"log_messages" def:"false" doc:"One log line at level info for each handler call."`

	Settle       string        `key:"settle" oneof:"auto|manual" def:"auto" doc:"manual: the handler settles."`
	Batch        *batchSection `key:"batch" doc:"Messages come in batches, to a handler made with config.Batch."`
	Stuck        stuckSection  `key:"stuck" doc:"Handlers that do not return."`
	DrainTimeout time.Duration `key:"drain_timeout" none:"none" def:"20s" doc:"How long a stop waits for running handlers before their contexts are cancelled."`
	CancelGrace  time.Duration `key:"cancel_grace" def:"2s" doc:"Time after that to return messages and close."`
	Reopen       reopenSection `key:"reopen" doc:"Delays between attempts to subscribe: the keys of redelivery.backoff, with initial 250ms and max 30s."`

	StartPaused   bool   `key:"start_paused" def:"false" doc:"Connects and declares, but takes nothing until resumed."`
	WaitForBroker bool   `key:"wait_for_broker" def:"false" doc:"The start waits for an unreachable broker."`
	LogLevel      string `key:"log_level" oneof:"debug|info|warn|error" def:"warn, or what the logger given in code has" doc:"Least level of log lines."`
}
