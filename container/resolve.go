package container

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/internal/backoff"
	"github.com/longshore-go/longshore/internal/clock"
	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// The defaults of Config.
const (
	defaultMaxWorkers = 10
	minLookahead      = 8
	defaultMaxBytes   = 64 << 20
	defaultAttempts   = 5
	defaultBatch      = 100
	defaultLinger     = 50 * time.Millisecond
	defaultDrain      = 20 * time.Second
	defaultGrace      = 2 * time.Second
	defaultStuck      = 5 * time.Minute
	parkedFactor      = 16
	// asideMost is how many deliveries that wait behind a blocked one take no place in the
	// window; as many as a Kafka partition may have above an offset that is not done.
	asideMost = 1 << 16

	maxWorkers     = 100_000
	maxBatch       = 100_000
	maxTime        = 366 * 24 * time.Hour
	publishTimeout = 10 * time.Second
	openTimeout    = 30 * time.Second
)

// The zero values of Redelivery.Backoff and Reopen.
func redeliverySpacing() Backoff {
	return Backoff{Initial: time.Second, Max: 5 * time.Minute, Multiplier: 2, Jitter: 0.2}
}

func reopenSpacing() Backoff {
	return Backoff{Initial: 250 * time.Millisecond, Max: 30 * time.Second, Multiplier: 2, Jitter: 0.2}
}

// settings is a Config with every default filled in.
type settings struct {
	name        string                // Config.Name, or the source's
	about       transport.Description // the source's description
	policy      autoscale.Policy      // Config.Autoscale
	look        int                   // 0 = follows the workers
	maxBytes    int64                 // Config.MaxBytes: bodies and keys that may be held
	order       Order                 // Config.Order
	ordered     bool                  // order keeps one
	byFunc      bool                  // the user's function makes the keys, so it is called without the lock
	byPartition bool                  // lanes are partitions, whose names are shown as topic/number
	attempts    int                   // Redelivery.MaxAttempts
	retry       backoff.Policy        // Redelivery.Backoff
	retrySet    bool                  // the delays were asked for
	reopen      backoff.Policy        // Config.Reopen
	classify    func(error) error     // Redelivery.Classify; nil: errors follow the policy
	parked      int                   // Redelivery.Parked: retries that may wait here beside the window
	dead        DeadLetter            // Config.DeadLetter
	deletion    *deletion             // Config.Deletion
	hops        int                   // moves after which a message stays
	gate        Gate                  // Config.Throttle; nil: none
	manual      bool                  // Config.Settle is SettleManual
	batch       int                   // 0 = single deliveries
	linger      time.Duration         // Batch.Linger
	drain       time.Duration         // Config.DrainTimeout
	grace       time.Duration         // Config.CancelGrace
	stuck       Stuck                 // Config.Stuck
	wait        bool                  // Config.WaitForBroker
	clock       longshore.Clock       // Config.Clock
	system      bool                  // it is the system's
	log         *zap.Logger           // Config.Logger
	briefLog    bool                  // no logger was given: stderr gets only what a person needs
	onEvent     func(Event)           // Config.OnEvent; nil: not wanted
	warnings    []string              // reported when the container starts
}

// problems collects everything that is wrong, so that one error reports all of it.
type problems struct {
	problem.List // with the container as their source
}

func problemsOf(container string) *problems {
	return &problems{problem.List{Op: fmt.Sprintf("container %q", container), Source: container}}
}

func (p *problems) number(field string, v, lo, hi int) {
	if v < lo || v > hi {
		p.Range(field, v, "from %d to %d", lo, hi)
	}
}

// duration refuses a time that is too long, or negative and not -1, which means none.
func (p *problems) duration(field string, v time.Duration) {
	if v > maxTime || (v < 0 && v != -1) {
		p.Range(field, v, "positive and at most %v, or 0 for the default{?, or -1 for none}", maxTime)
	}
}

// described is what a source says of itself.
func described(src transport.Source) transport.Description {
	if d, ok := src.(transport.Describer); ok {
		return d.Describe()
	}
	return transport.Description{Name: "source"}
}

// resolve fills the defaults in. It never looks at a broker.
func resolve(src transport.Source, cfg Config, batch bool) (*settings, Workers, error) {
	s := &settings{about: described(src), gate: cfg.Throttle, stuck: cfg.Stuck, wait: cfg.WaitForBroker, onEvent: cfg.OnEvent}
	s.name = first(cfg.Name, s.about.Name)
	p := problemsOf(s.name)
	s.deletion = cfg.Deletion.apply(p, src, &cfg, batch)
	s.classify, s.manual, s.dead = cfg.Redelivery.Classify, cfg.Settle == SettleManual, cfg.DeadLetter
	s.clock, s.system = clock.Or(cfg.Clock), cfg.Clock == nil
	s.log, s.briefLog = logs.OrStderr(cfg.Logger, zapcore.InfoLevel), cfg.Logger == nil
	w := s.workers(p, cfg)
	s.intake(p, cfg, w, batch)
	whole := p.Len() == 0
	s.redelivery(p, src, cfg, w)
	s.stopping(p, cfg)
	s.middleware(p, cfg, batch)
	s.together(p, src, cfg, batch)
	s.fits(p, src, w, whole)
	if c, ok := src.(transport.Checker); ok {
		p.Join(c.Check())
	}
	return s, w, p.Err()
}

func (s *settings) workers(p *problems, cfg Config) Workers {
	w := cfg.Workers
	p.number("Workers.Min", w.Min, 0, maxWorkers)
	p.number("Workers.Max", w.Max, 0, maxWorkers)
	w = w.filled()
	if w.Min > w.Max {
		p.Range("Workers.Min", w.Min, "at most {Workers.Max}, which is %d", w.Max)
	}
	if s.policy = cfg.Autoscale; s.policy == nil {
		s.policy = autoscale.Adaptive{}
	}
	p.Below("Autoscale", s.policy.Check())
	return w
}

func (w Workers) filled() Workers {
	if w.Max == 0 {
		w.Max = max(defaultMaxWorkers, w.Min)
	}
	if w.Min == 0 {
		w.Min = 1
	}
	return w
}

func (s *settings) intake(p *problems, cfg Config, w Workers, batch bool) {
	p.number("Lookahead", cfg.Lookahead, -1, maxBatch)
	s.look = cfg.Lookahead
	if cfg.MaxBytes < 0 {
		p.Range("MaxBytes", cfg.MaxBytes, "positive, or 0 for the default, 64 MiB")
	}
	if s.maxBytes = cfg.MaxBytes; s.maxBytes == 0 {
		s.maxBytes = defaultMaxBytes
	}
	if cfg.Settle > SettleManual {
		p.Range("Settle", cfg.Settle, "{SettleAuto} or {SettleManual}")
	}
	if cfg.Stuck.Action > StuckReplace {
		p.Range("Stuck.Action", cfg.Stuck.Action, "{StuckWait} or {StuckReplace}")
	}
	p.duration("Stuck.After", cfg.Stuck.After)
	if s.stuck.After == 0 {
		s.stuck.After = defaultStuck
	}
	if !batch {
		if cfg.Batch != (Batch{}) {
			p.Bad("Batch", "make the container with container.NewBatch, or leave {Batch} out", "is set, but the handler takes single deliveries")
		}
		return
	}
	s.batching(p, cfg, w)
}

func (s *settings) batching(p *problems, cfg Config, w Workers) {
	p.number("Batch.Size", cfg.Batch.Size, 0, maxBatch)
	p.duration("Batch.Linger", cfg.Batch.Linger)
	if s.manual {
		p.Conflict("Settle", "manual", "{Batch}", "the result of a batch handler settles its deliveries", "leave {Settle} out")
	}
	if s.batch = cfg.Batch.Size; s.batch == 0 {
		s.batch = defaultBatch
	}
	if s.linger = cfg.Batch.Linger; s.linger == 0 {
		s.linger = defaultLinger
	}
	s.linger = max(s.linger, 0)
	if cfg.Lookahead > 0 && w.Max+cfg.Lookahead < w.Max*s.batch {
		p.Range("Lookahead", cfg.Lookahead, "at least %d, because {Workers.Max} %d × {Batch.Size} %d need a window of %d; 0 follows them",
			w.Max*s.batch-w.Max, w.Max, s.batch, w.Max*s.batch)
	}
}

func (s *settings) stopping(p *problems, cfg Config) {
	p.duration("DrainTimeout", cfg.DrainTimeout)
	switch s.drain = cfg.DrainTimeout; {
	case s.drain == 0:
		s.drain = defaultDrain
	case s.drain < 0:
		s.drain = 0
	}
	if cfg.CancelGrace < 0 || cfg.CancelGrace > maxTime {
		p.Range("CancelGrace", cfg.CancelGrace, "positive and at most %v, or 0 for the default, %v", maxTime, defaultGrace)
	}
	if s.grace = cfg.CancelGrace; s.grace == 0 {
		s.grace = defaultGrace
	}
}

// window is how many deliveries may be held beside n workers, parked retries not
// counted.
func (s *settings) window(n int) int {
	look := s.look
	switch {
	case look < 0:
		look = 0
	case s.batch > 0 && look == 0:
		return n*s.batch + max(s.batch, minLookahead)
	case look == 0:
		look = max(n, minLookahead)
	}
	if s.batch > 0 {
		return max(n+look, n*s.batch)
	}
	return n + look
}

func first(names ...string) string {
	for _, n := range names {
		if n != "" {
			return n
		}
	}
	return ""
}
