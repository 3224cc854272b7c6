package demo

import (
	"time"

	"go.uber.org/zap"
)

// Config of a demo. The zero value runs 15 s on embedded brokers and shows nothing.
type Config struct {
	// For is how long it takes. Zero: 15 s. At least 1 s.
	For time.Duration
	// Stay keeps the load up until it is interrupted.
	Stay bool
	// Migrate runs on RabbitMQ and Kafka alone, and moves the orders from the one to the other
	// while they flow.
	Migrate bool
	// Seed decides keys and failures, and is a part of the queues' names. Zero: 1.
	Seed uint64
	// AMQP is the URL of a RabbitMQ to use instead of the embedded server.
	AMQP string
	// Answer is how long a broker may take to answer at first. Zero: 10 s.
	Answer time.Duration
	// Kafka are addresses of a cluster to use instead of the embedded one.
	Kafka []string
	// SQS is an endpoint to use instead of the embedded server.
	SQS string
	// Show hears of everything. nil: no observer.
	Show Show
	// Log is the containers' log. nil: silence.
	Log *zap.Logger

	// only names the brokers to run; nil = all but memory.
	only []string
}

// The load. A burst is scaled down with For below 15 s.
const (
	defaultFor   = 15 * time.Second
	burstSize    = 2000
	steadyRate   = 170 // orders a second on each broker
	workTime     = 20 * time.Millisecond
	keys         = 200
	flakyShare   = 100 // one of so many orders fails at first
	poisonSize   = 4
	lastSize     = 4 // orders published just before the drain
	permits      = 2
	workersMax   = 16
	answerTime   = 10 * time.Second
	settleTime   = 10 * time.Second // for the rest of the orders after For
	publishTime  = 5 * time.Second
	publishBatch = 100
)

// The shares of For at which things happen, in percent.
const (
	atBurst       = 7
	atPoison      = 25
	atThrottle    = 45
	atCut         = 60
	atThrottleOff = 75
	atEnd         = 85
	atMove        = 14 // instead of the throttle and the cut
)

func (c Config) filled() Config {
	if c.For == 0 {
		c.For = defaultFor
	}
	c.For = max(c.For, time.Second)
	if c.Answer <= 0 {
		c.Answer = answerTime
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.Show == nil {
		c.Show = silent{}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c
}

// workersMin is how many workers a container begins with. The two of a move begin with several:
// what the old one has in its window is worked off before the first order is moved.
func (c Config) workersMin() int {
	if c.Migrate {
		return workersMax / 2
	}
	return 1
}

func (c Config) burst() int {
	return max(int(int64(burstSize)*int64(min(c.For, defaultFor))/int64(defaultFor)), 50)
}

// at is when a step happens.
func (c Config) at(percent int) time.Duration { return c.For * time.Duration(percent) / 100 }
