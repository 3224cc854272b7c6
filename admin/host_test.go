package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/transport"
)

// A page of another site may point a name of its own at this server: the page, its files, the
// streams, logins and changes are refused under it, to an operator too. Probes alone use names
// that the server does not know.
func TestTheHostIsChecked(t *testing.T) {
	s, err := New(Config{Addr: "127.0.0.1:0", Hosts: []string{"Orders.Internal"}, Logger: zap.NewNop(), Operators: map[string]transport.Secret{"anna": transport.Static(peerToken)}})
	if err != nil {
		t.Fatal(err)
	}
	h := s.Handler()
	ask := func(method, host, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader("{}"))
		r.Host, r.RemoteAddr = host, "127.0.0.1:40000"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+peerToken)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for host, served := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:8391": true, "[::1]:8391": true, "::1": true, "10.0.0.9:8391": true, "localhost": true, "LOCALHOST:8391": true,
		"orders.internal": true, "ORDERS.internal:443": true,
		"": false, "evil.example": false, "evil.example:8391": false, "127.0.0.1.evil.example": false, "localhost.evil.example": false,
		"orders.internal.evil.example": false, "orders": false, "orders.internal.": false, "localhost:8391@evil.example": false, "127.0.0.1:8391:8391": false,
	} {
		for _, call := range []string{"GET /", "GET /console/app.js", "GET /api/containers", "GET /api/session", "GET /api/openapi.json", "GET /nowhere",
			"POST /api/session", "POST /api/containers/orders/pause", "PUT /api/containers/orders/throttle", "DELETE /api/jobs/j-1"} {
			method, path, _ := strings.Cut(call, " ")
			w := ask(method, host, path)
			if refused := w.Code == http.StatusForbidden; refused == served {
				t.Errorf("%s under %q: %d", call, host, w.Code)
				continue
			}
			var e errorBody
			if err := json.Unmarshal(w.Body.Bytes(), &e); !served && (err != nil || e.Code != "forbidden" || !strings.Contains(e.Help, "Hosts")) {
				t.Errorf("%s under %q is refused with %s", call, host, w.Body)
			}
		}
		if w := ask(http.MethodGet, host, "/health/live"); w.Code != http.StatusOK {
			t.Errorf("a probe under %q: %d", host, w.Code)
		}
	}
}
