package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
	"github.com/longshore-go/longshore/transport"
)

// role is what a caller may do.
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

// roleOf is the role of the caller.
func roleOf(ctx context.Context) role {
	has, _ := ctx.Value(roleKey{}).(role)
	return has
}

// as returns ctx with a caller.
func as(ctx context.Context, name string, has role) context.Context {
	return context.WithValue(context.WithValue(ctx, whoKey{}, name), roleKey{}, has)
}

// sees tells whether the caller may see ids, keys and texts.
func sees(ctx context.Context) bool {
	return roleOf(ctx) >= viewer
}

type whoKey struct{}

// who names the caller, for events.
func who(ctx context.Context) string {
	name, _ := ctx.Value(whoKey{}).(string)
	return name
}

// access knows who may do what: the configured people, the operator of the token made at
// the start, and the browsers that logged in.
type access struct {
	hosts      []string                    // names under which the API may be reached
	configured map[string]transport.Secret // the operators of the configuration
	viewers    map[string]transport.Secret
	localToken bool    // the token made at the start counts on this host alone
	about      Session // of this instance, without a caller
	logins     logins
	failed     atomic.Int64 // requests with an unknown token
	quiet      logs.Quiet   // of the line about them
	log        *zap.Logger

	mu   sync.Mutex
	made map[string]transport.Secret // the operator of the token made at the start
	file string                      // that has this token; "": none was written
}

func newAccess(cfg *Config) *access {
	a := &access{configured: cfg.Operators, viewers: cfg.Viewers, localToken: cfg.localToken, log: cfg.Logger,
		about: Session{Instance: cfg.Instance, Started: time.Now(), Version: version()}}
	host, _, _ := net.SplitHostPort(cfg.Addr) // checked
	for _, h := range append([]string{host}, cfg.Hosts...) {
		if h != "" {
			a.hosts = append(a.hosts, strings.ToLower(h))
		}
	}
	return a
}

// operators are those of the configuration, else the one of the token made at the start.
func (a *access) operators() map[string]transport.Secret {
	if len(a.configured) > 0 {
		return a.configured
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.made
}

// check reads every token, so that a service does not start with one that never works.
func (a *access) check(ctx context.Context) error {
	for kind, people := range map[string]map[string]transport.Secret{"operator": a.configured, "viewer": a.viewers} {
		for name, secret := range people {
			if token, err := secret.Get(ctx); err != nil || len(token) < MinToken {
				return &longshore.Error{Code: longshore.CodeConfig, Op: "serve the admin API", Hint: fmt.Sprintf("use a token of at least %d characters", MinToken),
					Err: fmt.Errorf("the token of %s %q cannot be read or is too short", kind, name)}
			}
		}
	}
	return nil
}

// makeToken writes a token where no operator is configured. path "" is the default for addr.
func (a *access) makeToken(path, addr string) error {
	if len(a.configured) > 0 {
		return nil
	}
	chosen := path != ""
	if !chosen {
		path = TokenFile(addr)
	}
	token, err := writeToken(path)
	if err != nil && !chosen {
		// Another user of this host may have taken the default place. The service starts
		// anyway, and changes are refused.
		a.log.Warn("no admin token was written, changes are refused", logs.Failure(err)...)
		return nil
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.file, a.made = path, map[string]transport.Secret{"local": transport.Static(token)}
	return nil
}

// withdrawToken ends what makeToken began.
func (a *access) withdrawToken() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	file := a.file
	a.file, a.made = "", nil
	if file == "" {
		return nil
	}
	return os.Remove(file)
}

// guard lets requests through that come from the right place.
func (a *access) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		if !a.knownHost(r.Host) && !strings.HasPrefix(r.URL.Path, "/health/") { // probes use the names of services
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
func (a *access) knownHost(host string) bool {
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return net.ParseIP(host) != nil || host == "localhost" || slices.Contains(a.hosts, host)
}

// needs lets through who has at least the role.
func (a *access) needs(least role, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, has := a.caller(r.Context(), r)
		if has == operator && a.localToken && !fromHere(r) {
			name, has = "", nobody
		}
		wrong := has == nobody && r.Header.Get("Authorization") != ""
		if wrong && least > nobody {
			a.refused(r)
		}
		if has == nobody && !wrong && fromHere(r) {
			has = local
		}
		switch {
		case has >= least:
			next(w, r.WithContext(as(r.Context(), name, has)))
		case has <= local:
			w.Header().Set("WWW-Authenticate", `Bearer realm="longshore"`)
			text := "a token is needed"
			if wrong {
				text = "unknown token"
			}
			fail(w, http.StatusUnauthorized, longshore.CodeAuth, text, "send Authorization: Bearer TOKEN; longshore ctl takes it from LONGSHORE_TOKEN or --token-file")
		default:
			fail(w, http.StatusForbidden, longshore.CodeForbidden, "a viewer may look, not change", "use an operator's token")
		}
	})
}

// caller finds out who it is: by the token of the request, else by the cookie that a
// browser got for one.
func (a *access) caller(ctx context.Context, r *http.Request) (name string, has role) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if ok && given != "" {
		return a.owner(ctx, sha256.Sum256([]byte(given)))
	}
	if c, err := r.Cookie(cookieName(r)); err == nil && r.Header.Get("Authorization") == "" {
		if sum, ok := a.logins.find(c.Value, time.Now()); ok {
			return a.owner(ctx, sum)
		}
	}
	return "", nobody
}

// owner finds out whose token has this digest. Every token is compared, so that the time
// tells nothing.
func (a *access) owner(ctx context.Context, sum [sha256.Size]byte) (name string, has role) {
	look := func(people map[string]transport.Secret, their role) {
		for n, secret := range people {
			token, err := secret.Get(ctx)
			if err != nil || len(token) < MinToken {
				continue
			}
			want := sha256.Sum256([]byte(token))
			if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 && their > has {
				name, has = n, their
			}
		}
	}
	look(a.viewers, viewer)
	look(a.operators(), operator)
	return name, has
}

// stillMay tells whether the caller of a stream has the role with which it began.
func (a *access) stillMay(r *http.Request) bool {
	began := roleOf(r.Context())
	_, has := a.caller(r.Context(), r)
	return began <= local || has >= began
}

// refused counts a login that failed and logs it, once a minute.
func (a *access) refused(r *http.Request) {
	a.failed.Add(1)
	if stands, due := a.quiet.Due(time.Now()); due {
		a.log.Warn("admin login refused", zap.String("remote", remote(r)), logs.Repeated(stands))
	}
}

// clip keeps foreign text short, in whole characters.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 128)], "") }
