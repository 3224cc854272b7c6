package observe

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long something may take to be seen: it has to happen, to be scraped,
// and to stay for as long as a rate needs.
const patience = 90 * time.Second

// server is a Prometheus server.
type server struct{ url string }

// startServer starts the program that `make observe` built. It scrapes once a second.
func startServer(t *testing.T, targets ...string) *server {
	t.Helper()
	dir := t.TempDir()
	config, err := json.Marshal(map[string]any{ // JSON is YAML
		"global": map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"scrape_configs": []any{map[string]any{"job_name": "longshore",
			"static_configs": []any{map[string]any{"targets": targets}}}},
	})
	must(t, err)
	file := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(file, config, 0o600))
	addr := start(t, needed(t, "LONGSHORE_PROMETHEUS"), regexp.MustCompile(`msg="Listening on" .*address=(\S+)`),
		"--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	s := &server{"http://" + addr}
	eventually(t, "Prometheus is ready", func() error {
		_, err := get(t, s.url+"/-/ready")
		return err
	})
	return s
}

// needed is a program that `make observe` built.
func needed(t *testing.T, name string) string {
	t.Helper()
	program := os.Getenv(name)
	if program == "" {
		t.Fatalf("%s is not set: run make observe", name)
	}
	return program
}

// start runs a program until the end of the test and returns what its log says of where
// it listens. The log is shown if the test fails.
func start(t *testing.T, program string, listens *regexp.Regexp, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	must(t, cmd.Start())
	found, ended := make(chan string, 1), make(chan struct{})
	var log bytes.Buffer
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			log.WriteString(lines.Text() + "\n")
			if m := listens.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case found <- m[1]:
				default:
				}
			}
		}
		_, _ = io.Copy(io.Discard, r)
	}()
	go func() {
		_ = cmd.Wait()
		_ = w.Close()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		<-ended
		kill.Stop()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(program), log.String())
		}
	})
	select {
	case addr := <-found:
		return addr
	case <-ended:
	case <-time.After(patience):
	}
	t.Fatalf("%s does not listen", program)
	return ""
}

// sample is one series of an answer.
type sample struct {
	labels map[string]string
	value  float64
}

func (s sample) String() string {
	var b strings.Builder
	for _, name := range []string{"longshore_container", "messaging_destination_name", "instance", "verdict", "attempt", "reason", "code", "direction", "outcome", "state"} {
		if v := s.labels[name]; v != "" {
			fmt.Fprintf(&b, "%s ", v)
		}
	}
	return fmt.Sprintf("%s= %.4g", b.String(), s.value)
}

// query asks at this moment.
func (s *server) query(t *testing.T, expr string) ([]sample, error) {
	t.Helper()
	body, err := get(t, s.url+"/api/v1/query?"+url.Values{"query": {expr}}.Encode())
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
		Warnings, Infos []string
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if all := append(answer.Warnings, answer.Infos...); len(all) > 0 {
		return nil, fmt.Errorf("Prometheus says %q", all)
	}
	out := make([]sample, 0, len(answer.Data.Result))
	for _, r := range answer.Data.Result {
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, sample{r.Metric, v})
	}
	slices.SortFunc(out, func(a, b sample) int { return cmp.Compare(a.String(), b.String()) })
	return out, nil
}

// values are those of a label, as Grafana's label_values asks for them.
func (s *server) values(t *testing.T, label, selector string) (out struct{ Data []string }) {
	t.Helper()
	body, err := get(t, s.url+"/api/v1/label/"+label+"/values?"+url.Values{"match[]": {selector}}.Encode())
	must(t, err)
	must(t, json.Unmarshal(body, &out))
	return out
}

func get(t *testing.T, from string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s %s", from, resp.Status, body)
	}
	return body, nil
}

// eventually waits until see has nothing to say.
func eventually(t *testing.T, what string, see func() error) {
	t.Helper()
	tick, late := time.NewTicker(250*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		err := see()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Errorf("%s: not within %v: %v", what, patience, err)
			return
		}
	}
}
