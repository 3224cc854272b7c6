package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/hosts"
)

// target is an instance.
type target struct {
	addr, base string
	named      string // what the address is from
	token      string
	// tokenAt is the file in which the instance's own token was looked for, noToken why
	// it is not known.
	tokenAt string
	noToken error
}

// targets are the instances to talk to, each with its token.
func (c *ctl) targets() ([]target, error) {
	token, err := c.givenToken()
	if err != nil {
		return nil, err
	}
	at, err := c.place()
	if err != nil {
		return nil, err
	}
	var ts []target
	for _, addr := range strings.Split(at.addrs, ",") {
		t := target{addr: strings.TrimSpace(addr), named: at.named, token: token}
		u, err := addressOf(t.addr)
		if err != nil {
			return nil, err
		}
		t.base = strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/")
		if t.token == "" && hosts.Loopback(u.Hostname()) {
			if t.tokenAt = at.tokenFile; t.tokenAt == "" {
				t.tokenAt = admin.TokenFile(u.Host)
			}
			t.token, t.noToken = tokenIn(t.tokenAt)
		}
		if t.token != "" && u.Scheme == "http" && !hosts.Loopback(u.Hostname()) {
			c.print.Notef("warning: the token goes to %s without TLS: anyone on the way can read it; use https:// (admin.tls in the file)", u.Host)
		}
		ts = append(ts, t)
	}
	return ts, nil
}

// addressOf reads host, host:port or a URL.
func addressOf(addr string) (*url.URL, error) {
	base := addr
	if !strings.Contains(base, "://") {
		if _, _, err := net.SplitHostPort(base); err != nil && base != "" && !strings.ContainsAny(base, "/@") {
			_, port, _ := net.SplitHostPort(admin.DefaultAddr) // a constant
			base = net.JoinHostPort(strings.Trim(base, "[]"), port)
		}
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, &cli.UsageError{Text: "one of the admin addresses is not an address", Hint: "write host:port or https://host:port, separated by commas"}
	}
	return u, nil
}

// adminPlace is where the admin API is said to be.
type adminPlace struct{ addrs, tokenFile, named string }

// place follows --admin, then -c, then LONGSHORE_ADMIN, then the file that other verbs read.
func (c *ctl) place() (adminPlace, error) {
	v := c.env("LONGSHORE_ADMIN")
	switch {
	case c.admin != "":
		return adminPlace{addrs: c.admin, named: "--admin"}, nil
	case c.file == "" && v != "":
		return adminPlace{addrs: v, named: "LONGSHORE_ADMIN"}, nil
	}
	opts, path := c.configFile(c.file)
	conf, r, err := c.inspect(opts, path)
	meant := c.file != "" || c.env("LONGSHORE_CONFIG") != ""
	switch {
	case err != nil && meant:
		return adminPlace{}, unreadable(err)
	case err != nil: // no file at all
		return adminPlace{addrs: admin.DefaultAddr, named: "--admin or LONGSHORE_ADMIN, or name its file: -c"}, nil
	case conf == nil:
		return adminPlace{}, &longshore.Error{Code: longshore.CodeConfig, Op: "find the admin API", Err: fmt.Errorf("%s in %s", counted(r.Errors(), "mistake"), r.File),
			Hint: "longshore config check shows them; --admin names the address without the file"}
	}
	return c.listening(conf, r.File, meant)
}

// listening is where a service with this file listens.
func (c *ctl) listening(conf *config.Config, file string, meant bool) (adminPlace, error) {
	at, ok := conf.Admin()
	if !ok && !meant {
		return adminPlace{addrs: admin.DefaultAddr, named: "--admin or LONGSHORE_ADMIN: " + file + " has no admin section"}, nil
	}
	if !ok {
		return adminPlace{}, &cli.UsageError{Text: file + " has no admin section: its service cannot be asked", Hint: "add admin: {} and start the service again, or name the address: --admin"}
	}
	host, port, err := net.SplitHostPort(at.Listen)
	if err != nil || port == "0" {
		return adminPlace{}, &cli.UsageError{Text: fmt.Sprintf("admin.listen in %s is %q: any free port", file, at.Listen), Hint: "name the address at which the service listens: --admin"}
	}
	switch host { // it listens on all addresses: this host's is one of them
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	addr := net.JoinHostPort(host, port)
	if at.TLS {
		addr = "https://" + addr
	}
	return adminPlace{addrs: addr, tokenFile: at.TokenFile, named: "admin.listen in " + file + ", or name it: --admin"}, nil
}

// givenToken is the token that the user gave.
func (c *ctl) givenToken() (string, error) {
	if c.tokenFile != "" {
		token, err := tokenIn(c.tokenFile)
		if err != nil {
			return "", &cli.UsageError{Text: "the token file cannot be read: " + err.Error(), Hint: "check --token-file"}
		}
		return token, nil
	}
	return c.env("LONGSHORE_TOKEN"), nil
}

// tokenIn reads a token file.
func tokenIn(path string) (string, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the user's own file
	return strings.TrimSpace(string(raw)), err
}

// tokenHint says how to be let in.
func (t *target) tokenHint() string {
	const give = "give an operator's token by LONGSHORE_TOKEN or --token-file"
	switch {
	case t.tokenAt == "":
		return give
	case errors.Is(t.noToken, fs.ErrNotExist):
		return give + "; an instance without operators writes one to " + t.tokenAt + " on its host, and there is none"
	case t.noToken != nil:
		return give + "; what the instance made cannot be read: " + t.noToken.Error()
	}
	return give + "; the one in " + t.tokenAt + " is not this instance's"
}
