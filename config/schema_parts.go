package config

import "time"

// workersSection bounds the number of handler calls that run at once.
type workersSection struct {
	Min int `key:"min" def:"1" doc:"Fewest."`
	Max int `key:"max" def:"10, or min if that is more" doc:"Most. {max: 1} is serial."`
}

// autoscaleSection chooses the policy that moves the number of workers, and its settings.
type autoscaleSection struct {
	Policy        string        `key:"policy" oneof:"adaptive|consecutive|spring|fixed" def:"adaptive" doc:"See [autoscaling](../explanation/autoscaling.md)."`
	Hold          time.Duration `key:"hold" def:"45s" on:"adaptive" doc:"How long a demand is remembered before workers leave."`
	Util          float64       `key:"util" def:"0.75" on:"adaptive" doc:"Target share of busy time, 0.1 to 0.85."`
	Drain         time.Duration `key:"drain" def:"5s" on:"adaptive" doc:"Time to clear the backlog."`
	Growth        float64       `key:"growth" def:"2" on:"adaptive" doc:"Factor of one step up, 1.1 to 4."`
	NoProbe       bool          `key:"no_probe" def:"false" on:"adaptive" doc:"No probes once a knee is found."`
	StartInterval time.Duration `key:"start_interval" def:"10s" on:"consecutive spring" doc:"Least time between two added workers."`
	StopInterval  time.Duration `key:"stop_interval" def:"60s" on:"consecutive spring" doc:"Least time between two removed workers."`
	ActiveTrigger int           `key:"active_trigger" def:"10" on:"consecutive spring" doc:"Active cycles in a row that add a worker."`
	IdleTrigger   int           `key:"idle_trigger" def:"10" on:"consecutive spring" doc:"Idle cycles in a row that remove one."`
	ReceiveWait   time.Duration `key:"receive_timeout" def:"1s" on:"consecutive spring" doc:"Time without work that is one idle cycle."`
	BatchSize     int           `key:"batch_size" def:"1" on:"spring" doc:"Messages in a cycle."`
}

// redeliverySection is what becomes of a message whose handler fails.
type redeliverySection struct {
	MaxAttempts int            `key:"max_attempts" def:"5" doc:"Handler calls before dead_letter applies; 1 means no retries."`
	Backoff     backoffSection `key:"backoff" doc:"Delay before the next attempt."`
	Parked      int            `key:"parked" def:"16 × (workers + lookahead)" doc:"Most retries that wait in this process."`
}

// backoffSection is the pauses between the attempts of one message.
type backoffSection struct {
	Every      time.Duration `key:"every" def:"it grows" like:"5s" doc:"A fixed delay, in place of the other fields."`
	Initial    time.Duration `key:"initial" def:"1s" doc:"Delay after the first failure."`
	Max        time.Duration `key:"max" def:"5m" doc:"Longest delay, jitter included."`
	Multiplier float64       `key:"multiplier" def:"2" doc:"Factor from one delay to the next, at least 1."`
	Jitter     float64       `key:"jitter" none:"none" def:"0.2" doc:"Share by which a delay varies, up to 1."`
}

// reopenSection has the fields of backoff with other defaults: it is about a broker and not a message.
type reopenSection struct {
	Every      time.Duration `key:"every" def:"it grows" like:"5s" doc:"A fixed delay, in place of the other fields."`
	Initial    time.Duration `key:"initial" def:"250ms" doc:"Delay after the first failure."`
	Max        time.Duration `key:"max" def:"30s" doc:"Longest delay, jitter included."`
	Multiplier float64       `key:"multiplier" def:"2" doc:"Factor from one delay to the next, at least 1."`
	Jitter     float64       `key:"jitter" none:"none" def:"0.2" doc:"Share by which a delay varies, up to 1."`
}

// deadLetterSection is taken as a whole from the container or from defaults: `to` of one with `policy`
// of the other would contradict each other.
type deadLetterSection struct {
	To      string `key:"to" like:"orders.dlq" doc:"Queue or topic to publish to, confirmed before the message is acked. On RabbitMQ also EXCHANGE/ROUTING.KEY."`
	MaxHops int    `key:"max_hops" def:"8" doc:"Moves to a dead-letter destination, and replays, after which a message stays: see [hops](errors.md#hops)."`
	Via     string `key:"via" like:"kafka" def:"the source's own broker" doc:"Name of another broker to publish to, where the destination must exist."`
	Policy  string `key:"policy" oneof:"native|keep|discard" doc:"Without to: native uses the broker's dead-letter exchange or redrive policy, keep retries for ever, discard drops the message with a log line."`
}

// throttleSection has pointers, since 0 permits hold everything and an absent key limits nothing.
type throttleSection struct {
	Permits *int           `key:"permits" def:"no limit" like:"20" doc:"Handler calls that run at once. 0 holds everything."`
	Rate    *float64       `key:"rate" def:"no limit" like:"200" doc:"Handler calls that start per second. 0 holds everything."`
	PerKey  *perKeySection `key:"per_key" doc:"The same for each key by itself."`
}

// perKeySection limits each key by itself, so that one busy customer does not hold up the others.
type perKeySection struct {
	Header  string   `key:"header" like:"tenant" def:"the message's key" doc:"Header with the key. Messages without it are unlimited."`
	Permits *int     `key:"permits" doc:"Handler calls of one key that run at once. Either permits or rate."`
	Rate    *float64 `key:"rate" doc:"Handler calls of one key that start per second."`
}

// breakerSection stops the intake while a dependency is down.
type breakerSection struct {
	Name        string        `key:"name" def:"dependency" doc:"The dependency, for logs."`
	Ratio       float64       `key:"ratio" def:"0.5" doc:"Share of failures in window that opens it, from min_requests on."`
	MinRequests int           `key:"min_requests" def:"10" doc:"Finished calls below which ratio does not count."`
	Window      time.Duration `key:"window" def:"30s" doc:"Time over which ratio is taken."`
	Consecutive int           `key:"consecutive" none:"never" def:"10" doc:"Failures in a row that open it whatever the ratio."`
	OpenFor     time.Duration `key:"open_for" def:"5s" doc:"Time open before the first trial, doubled with each failed one."`
	OpenMax     time.Duration `key:"open_max" def:"1m" doc:"Longest such time."`
	Trials      int           `key:"trials" def:"1" doc:"Successes in a row that close it."`
	Ramp        time.Duration `key:"ramp" none:"none" def:"10s" doc:"Time until all workers may run again."`
}

// dedupeSection remembers messages in memory, for one process.
type dedupeSection struct {
	Size   int           `key:"size" def:"10000" doc:"Messages that are remembered."`
	For    time.Duration `key:"for" def:"10m" doc:"How long."`
	Header string        `key:"header" def:"the message's identity" like:"order-id" doc:"Header that identifies a message."`
}

// batchSection hands several messages to one handler call.
type batchSection struct {
	Size   int           `key:"size" def:"100" doc:"Most messages of one call."`
	Linger time.Duration `key:"linger" none:"none" def:"50ms" doc:"How long the first one waits for others."`
}

// stuckSection reports handlers that do not return.
type stuckSection struct {
	After  time.Duration `key:"after" none:"never" def:"5m" doc:"Age at which a handler is reported, with its stack."`
	Action string        `key:"action" oneof:"wait|replace" def:"wait" doc:"replace starts another worker."`
}
