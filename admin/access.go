package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// role is what somebody may do.
type role uint8

const (
	nobody role = iota
	viewer
	operator
)

type whoKey struct{}

// who names the caller, for events.
func who(ctx context.Context) string {
	name, _ := ctx.Value(whoKey{}).(string)
	return name
}

// guard lets requests through that come from the right place.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		if !s.knownHost(r.Host) {
			fail(w, http.StatusForbidden, longshore.CodeForbidden, "the host "+clip(r.Host)+" is not served here", "add it to Hosts of the admin configuration")
			return
		}
		if err := cross.Check(r); err != nil {
			fail(w, http.StatusForbidden, longshore.CodeForbidden, "refused: a request from another site", "")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knownHost refuses names that a foreign page may have pointed at us; an address
// cannot be.
func (s *Server) knownHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return net.ParseIP(host) != nil || host == "localhost" || slices.Contains(s.hosts, host)
}

// needs lets through who has at least the role. Looking needs none on loopback.
func (s *Server) needs(least role, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, has := s.caller(r.Context(), r)
		if least == viewer && s.local && has == nobody {
			has = viewer
		}
		switch {
		case has >= least:
			next(w, r.WithContext(context.WithValue(r.Context(), whoKey{}, name)))
		case has == nobody:
			w.Header().Set("WWW-Authenticate", `Bearer realm="longshore"`)
			text := "a token is needed"
			if r.Header.Get("Authorization") != "" {
				text = "the token is nobody's here"
			}
			fail(w, http.StatusUnauthorized, longshore.CodeAuth, text, "send Authorization: Bearer TOKEN; longshore ctl takes it from LONGSHORE_TOKEN or --token-file")
		default:
			fail(w, http.StatusForbidden, longshore.CodeForbidden, "a viewer may look, not change", "use an operator's token")
		}
	})
}

// caller finds out who it is by the token. Every token is compared, so that the time
// tells nothing.
func (s *Server) caller(ctx context.Context, r *http.Request) (name string, has role) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || given == "" {
		return "", nobody
	}
	sum := sha256.Sum256([]byte(given))
	look := func(people map[string]transport.Secret, as role) {
		for n, secret := range people {
			token, err := secret.Get(ctx)
			if err != nil || len(token) < MinToken {
				continue
			}
			want := sha256.Sum256([]byte(token))
			if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 && as > has {
				name, has = n, as
			}
		}
	}
	look(s.cfg.Viewers, viewer)
	look(s.operators(), operator)
	return name, has
}

// clip keeps foreign text short.
func clip(s string) string { return s[:min(len(s), 128)] }
