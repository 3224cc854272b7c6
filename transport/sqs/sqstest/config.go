package sqstest

import (
	"errors"
	"fmt"
)

// Config of a server. The zero value listens on a free port of 127.0.0.1 and
// takes every access key.
type Config struct {
	// Addr to listen on; zero = a free port on 127.0.0.1.
	Addr string
	// NoPort: no port is opened; only [Server.HTTPClient] reaches the server. It
	// is faster, and works inside testing/synctest.
	NoPort bool
	// Region in ARNs; zero = us-east-1.
	Region string
	// AccountID in ARNs and queue URLs; zero = 000000000000.
	AccountID string
	// AccessKeys that may call; nil = every one. [Server.AllowKeys] changes it.
	AccessKeys []string
	// VirtualClock stops the server's clock: only [Server.Advance] moves it.
	VirtualClock bool
	// MaxInFlight is how many messages of a queue may be in flight; zero = 120,000,
	// as SQS has it.
	MaxInFlight int
	// CallLog is how many calls [Server.Calls] remembers; zero = 100,000, negative
	// = none.
	CallLog int
}

func (c Config) withDefaults() (Config, error) {
	var errs []error
	if c.NoPort && c.Addr != "" {
		errs = append(errs, errors.New("sqstest: Addr and NoPort exclude each other"))
	}
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.AccountID == "" {
		c.AccountID = "000000000000"
	}
	if len(c.AccountID) != 12 || !allDigits(c.AccountID) {
		errs = append(errs, fmt.Errorf("sqstest: AccountID %q: must be 12 digits", c.AccountID))
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = maxInFlight
	}
	if c.CallLog == 0 {
		c.CallLog = 100_000
	}
	return c, errors.Join(errs...)
}
