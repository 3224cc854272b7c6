// Package backoff computes delays between attempts: exponential, with jitter,
// and always within (0, Max] whatever the numbers are.
//
//	b := backoff.Policy{Initial: time.Second, Max: time.Minute, Multiplier: 2, Jitter: 0.2}
//	d := b.Delay(3, rand.Float64()) // 4 s ± 20 %
package backoff
