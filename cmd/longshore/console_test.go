package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/cli"
)

// One page for two instances: the link logs in once, a change reaches its instance, a signal
// ends it, and no token of an instance is ever sent to the browser.
func TestConsole(t *testing.T) {
	one, two := running(t, nil), running(t, nil)
	out, w := io.Pipe()
	errs := &watched{}
	signals := make(chan os.Signal, 1)
	a := &app{streams: cli.Streams{In: strings.NewReader(""), Out: w, Err: errs, Signals: signals,
		Env: func(name string) (string, bool) { return ctlToken, name == "LONGSHORE_TOKEN" }}}
	code := make(chan int, 1)
	go func() {
		code <- a.run([]string{"console", "--instance", one.a.Addr() + "," + two.a.Addr(), "--listen", "127.0.0.1:0", "--json"})
		_ = w.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	var at struct {
		Page, Login string
		Instances   int
	}
	if err != nil || json.Unmarshal([]byte(line), &at) != nil || at.Instances != 2 {
		t.Fatalf("%v, %q, %s", err, line, errs)
	}
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	ask := func(method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, at.Page+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, _ := io.ReadAll(res.Body)
		if strings.Contains(string(raw), ctlToken) {
			t.Errorf("%s %s shows a token", method, path)
		}
		return res.StatusCode, string(raw)
	}
	pause := "api/containers/orders/pause?instance=" + two.a.Addr()
	if status, _ := ask("POST", pause, ""); status != 401 {
		t.Errorf("without a login: %d", status)
	}
	_, once, _ := strings.Cut(at.Login, "#login=")
	for want, body := range map[int]string{200: `{"code":"` + once + `"}`} {
		if status, raw := ask("POST", "api/session", body); status != want {
			t.Fatalf("login: %d %s", status, raw)
		}
	}
	end := time.Now().Add(10 * time.Second)
	for raw := ""; strings.Count(raw, `"name":"orders"`) < 2 && time.Now().Before(end); {
		_, raw = ask("GET", "api/containers", "")
	}
	if status, raw := ask("POST", pause, `{"reason":"deploy"}`); status != 200 || two.c.State() != container.StatePaused || one.c.State() != container.StateRunning || !strings.Contains(raw, "at the console") {
		t.Errorf("%d %s", status, raw)
	}
	if _, raw := ask("GET", "api/compare", ""); !strings.Contains(raw, `"differences":[`) {
		t.Error(raw)
	}
	signals <- os.Interrupt
	select {
	case got := <-code:
		if got != 0 {
			t.Errorf("exit code %d, %s", got, errs)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	wd := reach(one)
	for _, args := range [][]string{{"--listen", "0.0.0.0:0"}, {"--operator", "kim"}, {"--tls-cert", "x"}, {"--listen", "nowhere"}, {"more"}} {
		if got := wd.run(t, append([]string{"console"}, args...)...); got.code != 2 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
