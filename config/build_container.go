package config

import (
	"math"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/middleware"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// settings makes the container.Config of a section, without what is code.
func (c *Config) settings(name string, s *containerSection) container.Config {
	cfg := s.settings(name)
	if v := c.vias[s.elsewhere()]; v != nil {
		cfg.DeadLetter.Via = v
	}
	return cfg
}

// settings is the container.Config of a section. An absent key is a zero field, and the container's
// default applies: this package has no defaults of its own that could differ.
func (s *containerSection) settings(name string) container.Config {
	cfg := container.Config{
		Name:         name,
		Workers:      container.Workers{Min: s.Workers.Min, Max: s.Workers.Max},
		Autoscale:    s.Autoscale.policy(),
		Lookahead:    s.Lookahead,
		MaxBytes:     int64(s.MaxBytes),
		Order:        s.Order.order(),
		Redelivery:   container.Redelivery{MaxAttempts: s.Redelivery.MaxAttempts, Backoff: container.Backoff(s.Redelivery.Backoff), Parked: s.Redelivery.Parked},
		DrainTimeout: s.DrainTimeout, CancelGrace: s.CancelGrace, Reopen: container.Backoff(s.Reopen),
		StartPaused: s.StartPaused, WaitForBroker: s.WaitForBroker,
		Stuck: container.Stuck{After: s.Stuck.After},
	}
	if s.Stuck.Action == "replace" {
		cfg.Stuck.Action = container.StuckReplace
	}
	if s.Settle == "manual" {
		cfg.Settle = container.SettleManual
	}
	if d := s.DeadLetter; d != nil {
		cfg.DeadLetter = container.DeadLetter{To: d.To, MaxHops: d.MaxHops, Policy: map[string]container.Policy{
			"native": container.DeadLetterNative, "keep": container.DeadLetterKeep, "discard": container.DeadLetterDiscard}[d.Policy]}
	}
	if s.Batch != nil {
		cfg.Batch = container.Batch{Size: s.Batch.Size, Linger: s.Batch.Linger}
	}
	cfg.Deletion = map[string]container.Deletion{"on_success": container.DeleteOnSuccess, "always": container.DeleteAlways,
		"never": container.DeleteNever, "no_redrive": container.DeleteNoRedrive}[s.Deletion]
	cfg.Throttle = s.Throttle.gate()
	return cfg
}

// policy returns nil for an absent section, which is the container's default policy.
func (s *autoscaleSection) policy() autoscale.Policy {
	switch {
	case s == nil:
		return nil
	case s.Policy == "consecutive":
		return autoscale.Consecutive{StartInterval: s.StartInterval, StopInterval: s.StopInterval, ActiveTrigger: s.ActiveTrigger,
			IdleTrigger: s.IdleTrigger, ReceiveTimeout: s.ReceiveWait}
	case s.Policy == "spring":
		return autoscale.Spring{StartInterval: s.StartInterval, StopInterval: s.StopInterval, ActiveTrigger: s.ActiveTrigger,
			IdleTrigger: s.IdleTrigger, ReceiveTimeout: s.ReceiveWait, BatchSize: s.BatchSize}
	case s.Policy == "fixed":
		return autoscale.Fixed{}
	}
	return autoscale.Adaptive{Hold: s.Hold, Util: s.Util, Drain: s.Drain, Growth: s.Growth, NoProbe: s.NoProbe}
}

// order is the container's order; nil leaves the choice to the container.
func (o order) order() container.Order {
	switch o {
	case "":
		return nil
	case "by_key":
		return container.ByKey
	case "by_partition":
		return container.ByPartition
	case "unordered":
		return container.Unordered
	}
	header := string(o[len(headerPrefix):])
	return container.OrderFunc(func(d *longshore.Delivery) string { return d.Headers.String(header) })
}

// gate is there without limits too, so that a limit can be set while it runs.
func (s *throttleSection) gate() *throttle.Limiter {
	l := throttle.NewUnlimited()
	if s != nil && s.Permits != nil {
		l.SetPermits(*s.Permits)
	}
	if s != nil && s.Rate != nil {
		l.SetRate(*s.Rate)
	}
	return l
}

// chain is the middlewares of a section around those of the code, outermost first; the
// timeout is the innermost, so that it never cuts a transaction's commit.
func (s *containerSection) chain(code []longshore.Middleware, log *zap.Logger) ([]longshore.Middleware, error) {
	var chain []longshore.Middleware
	if s.LogEach {
		if log == nil {
			log = logs.Stderr(zapcore.InfoLevel)
		}
		chain = append(chain, middleware.Log(log))
	}
	if b := s.Breaker; b != nil {
		made, err := breaker.New(breaker.Config{Name: b.Name, Ratio: b.Ratio, MinRequests: b.MinRequests, Window: b.Window, Consecutive: b.Consecutive,
			OpenFor: b.OpenFor, OpenMax: b.OpenMax, Trials: b.Trials, Ramp: b.Ramp, Logger: log})
		if err != nil {
			return nil, err
		}
		chain = append(chain, made)
	}
	if s.Decode {
		chain = append(chain, middleware.Decode(middleware.DecodeConfig{MaxBytes: int64(s.DecodeMaxBytes), MaxHeld: int64(s.DecodeMaxHeld)}))
	}
	if d := s.Dedupe; d != nil {
		cfg := middleware.DedupeConfig{Size: d.Size, For: d.For, Logger: log}
		if d.Header != "" {
			cfg.ID = header(d.Header)
		}
		chain = append(chain, middleware.Dedupe(cfg))
	}
	if s.Throttle != nil && s.Throttle.PerKey != nil {
		chain = append(chain, s.Throttle.PerKey.middleware())
	}
	chain = append(chain, code...)
	if s.Timeout > 0 {
		chain = append(chain, middleware.Timeout(s.Timeout))
	}
	return chain, nil
}

// middleware is the limit of each key by itself; it reads the message, so it cannot be part of the
// container's gate.
func (s *perKeySection) middleware() longshore.Middleware {
	key := func(d *longshore.Delivery) string { return string(d.Key) }
	if s.Header != "" {
		key = header(s.Header)
	}
	if s.Rate != nil {
		return throttle.PerKeyRate(*s.Rate, key)
	}
	permits := math.MaxInt32
	if s.Permits != nil {
		permits = *s.Permits
	}
	return throttle.PerKey(permits, key)
}

// header reads a key from a header; messages without it have the key "".
func header(name string) func(*longshore.Delivery) string {
	return func(d *longshore.Delivery) string { return d.Headers.String(name) }
}

// logger is the code's, from the level of the section on; nil is the container's own.
func (s *containerSection) logger(given *zap.Logger) *zap.Logger {
	level, err := zapcore.ParseLevel(s.LogLevel)
	switch {
	case s.LogLevel == "" || err != nil:
		return given
	case given == nil:
		return logs.Stderr(level)
	case level <= given.Level():
		return given
	}
	return given.WithOptions(zap.IncreaseLevel(level))
}
