package transport

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// Secret is a way to get a password or token. It is asked at each connect, so
// that a changed one is used without a restart. It prints as "***" in every
// format. The zero value is "none given".
type Secret struct {
	from string                                    // where it comes from, for messages; never the secret itself
	get  func(ctx context.Context) (string, error) // reads it, at each connect
}

// Env reads the environment variable name.
func Env(name string) Secret {
	return Secret{from: "env:" + name, get: func(context.Context) (string, error) {
		v, ok := os.LookupEnv(name)
		if !ok {
			return "", fmt.Errorf("environment variable %s is not set", name)
		}
		return v, nil
	}}
}

// File reads a file and cuts one line ending off its end.
func File(path string) Secret {
	return Secret{from: "file:" + path, get: func(context.Context) (string, error) {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
	}}
}

// Static is a value in the program.
func Static(value string) Secret {
	return Secret{from: "the configuration", get: func(context.Context) (string, error) { return value, nil }}
}

// Func asks f; from names the place in errors ("vault:shop/rabbit").
func Func(from string, f func(ctx context.Context) (string, error)) Secret {
	return Secret{from: from, get: f}
}

// IsZero reports whether none was given.
func (s Secret) IsZero() bool { return s.get == nil }

// Get returns the value, "" from the zero Secret.
func (s Secret) Get(ctx context.Context) (string, error) {
	if s.get == nil {
		return "", nil
	}
	return s.get(ctx)
}

// From says where it comes from, without its value: "env:RABBIT_PW".
func (s Secret) From() string { return s.from }

// String hides the value.
func (s Secret) String() string {
	if s.get == nil {
		return ""
	}
	return "***"
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return "transport.Secret{" + s.String() + "}" }

// MarshalText hides the value from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
