package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run() error {
	addr := flag.String("addr", "127.0.0.1:0", "AMQP address")
	management := flag.String("management", "127.0.0.1:0", "HTTP address")
	flavor := flag.String("flavor", "3.10", "3.10, 4.0 or 4.3")
	flag.Parse()
	flavors := map[string]amqptest.Flavor{"3.10": amqptest.V3_10, "4.0": amqptest.V4_0, "4.3": amqptest.V4_3}
	f, ok := flavors[*flavor]
	if !ok {
		return fmt.Errorf("flavor %q: use 3.10, 4.0 or 4.3", *flavor)
	}
	s, err := amqptest.Start(amqptest.Config{Addr: *addr, Flavor: f})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	ln, err := net.Listen("tcp", *management)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	web := &http.Server{Handler: api(s), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ln) }()
	fmt.Printf("AMQP_URL=%s\nMANAGEMENT=%s\n", s.URL, ln.Addr())
	<-ctx.Done()
	_ = web.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func api(s *amqptest.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/connections/{$}", func(w http.ResponseWriter, _ *http.Request) {
		type properties struct {
			ConnectionName string `json:"connection_name"`
		}
		type connection struct {
			Name             string     `json:"name"`
			ClientProperties properties `json:"client_properties"`
		}
		list := []connection{}
		for _, c := range s.Connections() {
			list = append(list, connection{c.Name, properties{c.ClientName}})
		}
		_ = json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("DELETE /api/connections/", func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/api/connections/")
		s.CloseConnections(320, "Closed via management plugin", func(c amqptest.ConnInfo) bool { return c.Name == name })
		w.WriteHeader(http.StatusNoContent)
	})
	// What rabbitmqctl set_vm_memory_high_watermark does to a node.
	mux.HandleFunc("POST /alarm/{state}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("state") == "on" {
			s.Block("low on memory")
		} else {
			s.Unblock()
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}
