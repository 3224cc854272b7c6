package conn

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// retryRenewal is how long to wait when the secret could not be had or has not
// changed yet.
const retryRenewal = time.Second

// renew keeps the login of a session fresh, if it can expire. A refusal makes the
// broker close the connection, and the next connect asks for the secret anyway.
func (s *Settings) renew(sess *Session, token string) {
	wait := s.renewIn(token, time.Now())
	if s.External || wait == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	sess.wg.Go(func() { <-sess.done; cancel() })
	sess.wg.Go(func() {
		for {
			t := time.NewTimer(wait)
			select {
			case <-t.C:
			case <-sess.done:
				t.Stop()
				return
			}
			next, err := s.Password.Get(ctx)
			if err != nil || (next == token && s.RenewEvery == 0) {
				wait = retryRenewal
				continue
			}
			if next != token {
				if sess.AMQP.UpdateSecret(next, "renewed before it expires") != nil {
					return
				}
				token = next
			}
			wait = max(s.renewIn(token, time.Now()), retryRenewal)
		}
	})
}

// renewIn is when to renew a token: RenewEvery, or after four fifths of what is
// left of a JWT's life; 0 = never.
func (s *Settings) renewIn(token string, now time.Time) time.Duration {
	if s.RenewEvery > 0 {
		return s.RenewEvery
	}
	exp, ok := expiry(token)
	if !ok {
		return 0
	}
	return max(exp.Sub(now)*4/5, retryRenewal)
}

// expiry reads the claim "exp" of a JWT. Anything else never expires.
func expiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(claims.Exp), 0), true
}
