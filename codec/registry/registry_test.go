package registry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/codec/protobuf"
	"github.com/longshore-go/longshore/codec/registry"
	"github.com/longshore-go/longshore/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a registry as its REST API is documented: schemas by id, and the latest
// one of each subject.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	schemas  map[string]string // by id, the JSON of the answer
	subjects map[string]string
	down     int // the status of every answer
	asked    map[string]int
	hold     chan struct{} // answers wait for it
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{asked: map[string]int{}, subjects: map[string]string{}, schemas: map[string]string{
		"1":   `{"schemaType":"JSON","schema":"{}"}`,
		"2":   `{"schemaType":"PROTOBUF","schema":"syntax = \"proto3\";"}`,
		"3":   `{"schema":"\"string\""}`, // Avro is not named
		"258": `{"schemaType":"JSON","schema":"{\"title\":\"order\"}"}`,
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /schemas/ids/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, s.schemas, r.PathValue("id"), 40403, "Schema not found")
	})
	mux.HandleFunc("GET /schemas/guids/{guid}", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, s.schemas, r.PathValue("guid"), 40403, "Schema not found")
	})
	mux.HandleFunc("GET /subjects/{subject}/versions/latest", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, s.subjects, r.PathValue("subject"), 40401, "Subject not found.")
	})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); ok && (user != "app" || password != "secret-word") {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error_code":401,"message":"Unauthorized"}`)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(w http.ResponseWriter, from map[string]string, key string, code int, text string) {
	s.mu.Lock()
	s.asked[key]++
	body, found := from[key]
	down, hold := s.down, s.hold
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	switch {
	case down != 0:
		w.WriteHeader(down)
		fmt.Fprint(w, "<html>somebody's error page</html>")
	case !found:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error_code":%d,"message":%q}`, code, text)
	default:
		fmt.Fprint(w, body)
	}
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[key]
}

func (s *server) codec(t *testing.T, change func(*registry.Config)) *registry.Codec {
	t.Helper()
	cfg := registry.Config{URLs: []string{s.URL}, User: "app", Password: transport.Static("secret-word"), Client: s.Client(),
		Codecs: map[registry.Kind]longshore.Codec{registry.JSON: longshore.JSON{}, registry.Protobuf: protobuf.Codec{}}}
	if change != nil {
		change(&cfg)
	}
	c, err := registry.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// framed is a body as a producer with a registry writes it.
func framed(id byte, rest ...byte) *longshore.Message {
	return &longshore.Message{Body: append([]byte{0, 0, 0, 0, id}, rest...)}
}
