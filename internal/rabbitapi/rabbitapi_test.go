package rabbitapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/rabbitapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Names with slashes reach the API as one element, and each answer has its code.
func TestAnswersOfTheAPI(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "u" || password != "p:w":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.EscapedPath() == "/api/queues/a%2Fb/q":
			_, _ = fmt.Fprint(w, `{"name":"q"}`)
		case r.URL.Path == "/api/text":
			_, _ = fmt.Fprint(w, "text")
		case r.URL.Path == "/api/broken":
			w.WriteHeader(http.StatusBadGateway)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(srv.Close)
	base, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	hc := srv.Client()
	c := rabbitapi.Client{Base: base, User: "u", Password: "p:w", HTTP: hc}
	for _, like := range []struct {
		path  []string
		found bool
		code  longshore.Code
	}{{[]string{"queues", "a/b", "q"}, true, ""}, {[]string{"queues", "a", "q"}, false, ""},
		{[]string{"text"}, false, longshore.CodeUndecodable}, {[]string{"broken"}, false, longshore.CodeUnreachable}} {
		var into struct{ Name string }
		found, err := c.Get(t.Context(), &into, like.path...)
		if found != like.found || longshore.CodeOf(err) != like.code || found && into.Name != "q" {
			t.Errorf("%v: found %t, %+v, %v", like.path, found, into, err)
		}
	}
	c.Password = "wrong"
	if _, err := c.Get(t.Context(), &struct{}{}, "overview"); longshore.CodeOf(err) != longshore.CodeForbidden {
		t.Errorf("a wrong login: %v", err)
	}
}
