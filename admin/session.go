package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
)

// Session is who is here, and with whom they talk.
type Session struct {
	Instance string `json:"instance"`
	// Started tells a restart of the instance from a lost connection.
	Started time.Time `json:"started"`
	Version string    `json:"version,omitempty"`
	// Role is local (no token, on this host), viewer or operator; Name the one of the token.
	Role string `json:"role"`
	Name string `json:"name,omitempty"`
}

func (a *access) session(ctx context.Context) Session {
	v := a.about
	v.Role, v.Name = roleOf(ctx).String(), who(ctx)
	return v
}

// String is the role for clients.
func (r role) String() string {
	switch r {
	case local:
		return "local"
	case viewer:
		return "viewer"
	case operator:
		return "operator"
	default:
		return "none"
	}
}

const (
	mostLogins = 256
	loginFor   = 12 * time.Hour
)

// logins are the browsers that traded a token for a cookie. A cookie stands for the
// token's digest: it is worth nothing from the moment on at which the token is.
type logins struct {
	mu    sync.Mutex
	of    map[string]login
	codes map[string]login // of links that may be used once
}

type login struct {
	sum   [sha256.Size]byte
	until time.Time
}

// begin makes a cookie's value for a token.
func (l *logins) begin(sum [sha256.Size]byte, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]login{}
	}
	oldest := ""
	for id, v := range l.of {
		if now.After(v.until) {
			delete(l.of, id)
		} else if oldest == "" || v.until.Before(l.of[oldest].until) {
			oldest = id
		}
	}
	if len(l.of) >= mostLogins {
		delete(l.of, oldest)
	}
	id := rand.Text()
	l.of[id] = login{sum, now.Add(loginFor)}
	return id
}

// find returns the digest of the token behind a cookie.
func (l *logins) find(id string, now time.Time) (sum [sha256.Size]byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.of[id]
	return v.sum, ok && now.Before(v.until)
}

func (l *logins) end(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, id)
}

// issue makes a code that can be traded once for a cookie, and drops those that expired.
func (l *logins) issue(sum [sha256.Size]byte, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.codes, func(_ string, v login) bool { return now.After(v.until) })
	if l.codes == nil {
		l.codes = map[string]login{}
	}
	code := rand.Text()
	l.codes[code] = login{sum, now.Add(linkFor)}
	return code
}

// redeem takes a code.
func (l *logins) redeem(code string, now time.Time) (sum [sha256.Size]byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.codes[code]
	delete(l.codes, code)
	return v.sum, ok && now.Before(v.until)
}

// cookieName differs by port, because cookies do not.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "longshore-" + port
	}
	return "longshore"
}

// logIn trades a token, or the code of a link, for a cookie. No page can read it, it is
// sent from this site only, and below api/ only: the path is the browser's default, so it
// holds behind a proxy's prefix too.
func (a *access) logIn(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Token string `json:"token"`
		Code  string `json:"code"`
	}
	if !read(w, r, &b) {
		return
	}
	now := time.Now()
	sum := sha256.Sum256([]byte(b.Token))
	ok := b.Token != ""
	if b.Code != "" {
		sum, ok = a.logins.redeem(b.Code, now)
	}
	name, has := "", nobody
	if ok {
		name, has = a.owner(r.Context(), sum)
	}
	if has == nobody {
		a.refused(r)
		help := "paste the token of an operator or viewer of this service"
		if b.Code != "" {
			help = "a link can be used once: log in with a token"
		}
		fail(w, http.StatusUnauthorized, longshore.CodeAuth, "unknown token", help)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: a.logins.begin(sum, now), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil, MaxAge: int(loginFor.Seconds())})
	answer(w, http.StatusOK, a.session(as(r.Context(), name, has)))
}

func (a *access) logOut(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName(r)); err == nil {
		a.logins.end(c.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil, MaxAge: -1})
	answer(w, http.StatusOK, map[string]any{"role": nobody.String()})
}

func (a *access) showSession(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, a.session(r.Context()))
}

// linkFor is how long a link can be used.
const linkFor = time.Hour

// linkCode is a code by which one browser is logged in as an operator, once and within
// linkFor. It is "" where no operator has a token.
func (a *access) linkCode(ctx context.Context) string {
	for _, secret := range a.operators() {
		if token, err := secret.Get(ctx); err == nil && len(token) >= MinToken {
			return a.logins.issue(sha256.Sum256([]byte(token)), time.Now())
		}
	}
	return ""
}
