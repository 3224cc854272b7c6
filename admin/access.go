package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/transport"
)

// role is what somebody may do.
type role uint8

const (
	nobody   role = iota
	local         // no token, on this host: names and numbers
	viewer        // ids, keys and texts as well
	operator      // changes
)

// fromHere tells whether a request comes from a process of this host, by its connection:
// not by the address that is configured, for the handler may be on a mux of one's own. A
// proxy of this host that forwards speaks for another one. A peer without an address,
// as on a Unix socket, is not known.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	if err != nil || ip == nil || !ip.IsLoopback() {
		return false
	}
	for name := range r.Header {
		if slices.Contains(forwarding(), name) || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	return true
}

// forwarding are the headers by which a proxy says that it forwards, besides X-Forwarded-*.
func forwarding() []string {
	return []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For",
		"X-Envoy-External-Address", "True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip", "Fly-Client-Ip"}
}

type roleKey struct{}

// sees tells whether the caller may see ids, keys and texts.
func sees(ctx context.Context) bool {
	has, _ := ctx.Value(roleKey{}).(role)
	return has >= viewer
}

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
		if !s.knownHost(r.Host) && !strings.HasPrefix(r.URL.Path, "/health/") { // probes use the names of services
			fail(w, http.StatusForbidden, longshore.CodeForbidden, "the host "+clip(r.Host)+" is not served here", "add it to Hosts of the admin configuration")
			return
		}
		if err := cross.Check(r); err != nil || fromOtherSite(r) {
			fail(w, http.StatusForbidden, longshore.CodeForbidden, "refused: a request from another site", "")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromOtherSite tells whether a page of another site asks for data. It could not read the
// answer, but open streams until none is left. A link to the page may be followed.
func fromOtherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" || strings.HasPrefix(r.URL.Path, "/api/")
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

// needs lets through who has at least the role.
func (s *Server) needs(least role, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, has := s.caller(r.Context(), r)
		if has == operator && s.cfg.localToken && !fromHere(r) {
			name, has = "", nobody
		}
		wrong := has == nobody && r.Header.Get("Authorization") != ""
		if wrong && least > nobody {
			s.refused(r)
		}
		if has == nobody && !wrong && fromHere(r) {
			has = local
		}
		switch {
		case has >= least:
			ctx := context.WithValue(r.Context(), whoKey{}, name)
			next(w, r.WithContext(context.WithValue(ctx, roleKey{}, has)))
		case has <= local:
			w.Header().Set("WWW-Authenticate", `Bearer realm="longshore"`)
			text := "a token is needed"
			if wrong {
				text = "the token is nobody's here"
			}
			fail(w, http.StatusUnauthorized, longshore.CodeAuth, text, "send Authorization: Bearer TOKEN; longshore ctl takes it from LONGSHORE_TOKEN or --token-file")
		default:
			fail(w, http.StatusForbidden, longshore.CodeForbidden, "a viewer may look, not change", "use an operator's token")
		}
	})
}

// caller finds out who it is: by the token of the request, else by the cookie that a
// browser got for one.
func (s *Server) caller(ctx context.Context, r *http.Request) (name string, has role) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if ok && given != "" {
		return s.owner(ctx, sha256.Sum256([]byte(given)))
	}
	if c, err := r.Cookie(cookieName(r)); err == nil && r.Header.Get("Authorization") == "" {
		if sum, ok := s.logins.find(c.Value, time.Now()); ok {
			return s.owner(ctx, sum)
		}
	}
	return "", nobody
}

// owner finds out whose token has this digest. Every token is compared, so that the time
// tells nothing.
func (s *Server) owner(ctx context.Context, sum [sha256.Size]byte) (name string, has role) {
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

// stillMay tells whether the caller of a stream has the role with which it began.
func (s *Server) stillMay(r *http.Request) bool {
	began, _ := r.Context().Value(roleKey{}).(role)
	_, has := s.caller(r.Context(), r)
	return began <= local || has >= began
}

// refused counts a login that failed and logs it, once a minute.
func (s *Server) refused(r *http.Request) {
	s.failedLogins.Add(1)
	if stands, due := s.quiet.Due(time.Now()); due {
		s.cfg.Logger.Warn("admin login refused", zap.String("remote", remote(r)), logs.Repeated(stands))
	}
}

// FailedLogins returns how many requests had a token that nobody has.
func (s *Server) FailedLogins() int64 { return s.failedLogins.Load() }

// clip keeps foreign text short.
func clip(s string) string { return s[:min(len(s), 128)] }
