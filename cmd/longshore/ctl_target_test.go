package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where the admin API is stands in the service's file, as all else about it.
func TestCtlReadsTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	one := running(t, nil)
	const containers = "containers:\n  orders: {source: \"mem://orders\"}\n"
	file := configFile(t, "admin: {listen: \""+one.a.Addr()+"\"}\n"+containers)
	w := world{env: map[string]string{}}
	if got := w.run(t, "ctl", "status", "-c", file); got.code != 0 || !strings.Contains(got.out, "orders") {
		t.Errorf("-c: %+v", got)
	}
	// -c counts for more than the variable, --admin for more than both.
	w.env["LONGSHORE_ADMIN"] = "127.0.0.1:1"
	if got := w.run(t, "ctl", "why", "orders", "-c", file); got.code != 0 {
		t.Errorf("-c with LONGSHORE_ADMIN: %+v", got)
	}
	if got := w.run(t, "ctl", "status", "-c", file, "--admin", "127.0.0.1:2"); got.code != 6 || !strings.Contains(got.err, "127.0.0.1:2") {
		t.Errorf("--admin: %+v", got)
	}
	if got := w.run(t, "ctl", "status"); got.code != 6 || !strings.Contains(got.err, "check LONGSHORE_ADMIN") {
		t.Errorf("LONGSHORE_ADMIN: %+v", got)
	}
	delete(w.env, "LONGSHORE_ADMIN")
	w.env["LONGSHORE_CONFIG"] = file
	if got := w.run(t, "ctl", "status"); got.code != 0 {
		t.Errorf("LONGSHORE_CONFIG: %+v", got)
	}
	w.env["LONGSHORE_ADMIN_LISTEN"] = "127.0.0.1:3" // the service's own override
	if got := w.run(t, "ctl", "status"); got.code != 6 || !strings.Contains(got.err, "127.0.0.1:3") || !strings.Contains(got.err, "check admin.listen in "+file) {
		t.Errorf("LONGSHORE_ADMIN_LISTEN: %+v", got)
	}
	clear(w.env)
	if got := w.run(t, "__complete", "ctl", "pause", "-c", file, ""); !strings.HasPrefix(got.out, "orders\n") {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]string{
		containers: "has no admin section",
		"admin: {listen: \"127.0.0.1:0\"}\n" + containers: "any free port",
		"admin: {listen: 7}\n" + containers:               "mistake",
	} {
		if got := w.run(t, "ctl", "status", "-c", configFile(t, text)); got.code != 2 || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got := w.run(t, "ctl", "status", "-c", "nowhere.yaml"); got.code != 2 || !strings.Contains(got.err, "nowhere.yaml") {
		t.Errorf("%+v", got)
	}
}

func TestCtlAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1": "127.0.0.1:8391", "localhost:9": "localhost:9", "::1": "[::1]:8391", "[::1]:9": "[::1]:9", "shop-2": "shop-2:8391",
		"https://shop-2/longshore": "shop-2",
	} {
		if u, err := addressOf(addr); err != nil || u.Host != want {
			t.Errorf("%s: %v, %v", addr, u, err)
		}
	}
	for _, addr := range []string{"", "http://u:p@host", "u:p@host", "ftp://host", "http://x y"} {
		if u, err := addressOf(addr); err == nil {
			t.Errorf("%q is %v", addr, u)
		}
	}
}

// How to be let in depends on where a token was looked for.
func TestCtlSaysWhichTokenIsMissing(t *testing.T) {
	one := running(t, nil)
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	w := world{env: map[string]string{"LONGSHORE_ADMIN": one.a.Addr()}}
	want := func(text string) {
		t.Helper()
		if got := w.run(t, "ctl", "pause", "orders"); got.code != 6 || !strings.Contains(got.err, "error[auth]") || !strings.Contains(got.err, text) || strings.Contains(got.err, "Authorization") {
			t.Errorf("%+v", got)
		}
	}
	want("writes one to " + filepath.Join(dir, "longshore"))
	at := filepath.Join(dir, "longshore", "admin-"+one.a.Addr()[strings.LastIndexByte(one.a.Addr(), ':')+1:]+".token")
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte("of an instance before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want("the one in " + at + " is not this instance's")
	w.env["LONGSHORE_TOKEN"] = "not the right one"
	want("unknown token")
}

// Who gets no answer gets no empty list, and what a verb needs is said by the verb.
func TestCtlSaysWhatIsMissing(t *testing.T) {
	one := running(t, nil)
	w := reach(one)
	for _, verb := range []string{"inflight", "stuck"} {
		for _, extra := range [][]string{nil, {"--json"}} {
			if got := w.run(t, append([]string{"ctl", verb, "nope"}, extra...)...); got.code != 1 || got.out != "" || strings.Contains(got.err, "none\n") {
				t.Errorf("%s: %+v", verb, got)
			}
		}
	}
	for args, text := range map[string]string{
		"scale orders": "scale needs --workers", "throttle orders --share each --permits 1": "--share is for a fleet",
		"throttle orders --permits 1 --add 1": "--permits and --add exclude each other",
	} {
		if got := w.run(t, append([]string{"ctl"}, strings.Fields(args)...)...); got.code != 2 || !strings.Contains(got.err, text) || strings.Contains(got.err, "/api/") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	got := w.run(t, "ctl", "throttle", "orders", "--rate", "2.5", "--burst", "3", "--for", "10m")
	if !strings.Contains(got.out, "rate – → 2.5     burst 0 → 3     until ") || !strings.HasSuffix(got.out, "(then rate –)\n") {
		t.Errorf("%+v", got)
	}
	if got = w.run(t, "ctl", "drain", "orders"); got.code != 0 {
		t.Errorf("%+v", got)
	}
	for _, args := range []string{"pause orders", "scale orders --workers 3"} {
		if got = w.run(t, append([]string{"ctl"}, strings.Fields(args)...)...); got.code != 7 || !strings.Contains(got.err, "it is stopped") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
