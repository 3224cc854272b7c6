package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/config"
)

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "longshore.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigCheckPointsAtEachMistake(t *testing.T) {
	path := configFile(t, "contaners: {}\ncontainers:\n  orders:\n    source: amqp://app:s3cr3t@h:bad/?queue=orders\n    workers: {min: 30, max: 1}\n")
	got := world{}.run(t, "config", "check", "-c", path)
	got.out = strings.ReplaceAll(got.out, path, "longshore.yaml")
	got.want(t, 1, "longshore.yaml:1:1: error[unknown-key]: unknown key `contaners`\n"+
		"   1 | contaners: {}\n"+
		"     | ^^^^^^^^^ did you mean `containers`?\n"+
		"longshore.yaml:4:24: warning[secret-in-file]: password written into a URL\n"+
		"   4 |     source: amqp://app:***@h:bad/?queue=orders\n"+
		"     |                        ^^^ write source: {url: …, password: env:NAME} or file:PATH\n"+
		"longshore.yaml:4:33: error[bad-address]: the port is not a number from 1 to 65535\n"+
		"   4 |     source: amqp://app:***@h:bad/?queue=orders\n"+
		"     |                              ^^^ leave it out for the default port; percent-encode / ? # @ : % in a password, or write password: env:NAME\n"+
		"longshore.yaml:5:15: error[out-of-range]: workers.min is 30\n"+
		"   5 |     workers: {min: 30, max: 1}\n"+
		"     |               ^^^^^^^ must be at most workers.max, which is 1\n"+
		"longshore.yaml: 3 errors, 1 warning; no broker was contacted\n", "")
}

func TestConfigCheckTellsTheGrace(t *testing.T) {
	path := configFile(t, "containers: {orders: {source: mem://orders, drain_timeout: 30s}}\n")
	world{env: map[string]string{"LONGSHORE_CONFIG": path}}.run(t, "config", "check").want(t, 0, path+": no mistakes; no broker was contacted\n1 container: orders\n"+
		"drain: up to 32s; stop_timeout 35s; give the process a grace of at least 40s (terminationGracePeriodSeconds: 40)\n", "")
	var doc struct {
		GraceSeconds float64 `json:"grace_seconds"`
		Problems     []config.Problem
	}
	got := world{}.run(t, "config", "check", "--json", "-c", path)
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil || got.code != 0 || doc.GraceSeconds != 40 || doc.Problems == nil {
		t.Errorf("%v %+v", err, got)
	}
}

// F-J04 of the command line.
func TestConfigShowNamesOriginsAndHidesSecrets(t *testing.T) {
	path := configFile(t, "admin: {operators: {anna: env:TOKEN}}\ncontainers: {orders: {source: mem://orders}}\n")
	got := world{env: map[string]string{"TOKEN": "s3cr3t-of-16-letters", "LONGSHORE_CONTAINERS_ORDERS_WORKERS_MAX": "50"}}.run(t, "config", "show", "-c", path)
	if got.code != 0 || strings.Contains(got.out, "s3cr3t") || !strings.Contains(got.out, "env:TOKEN, ") ||
		!strings.Contains(got.out, "max: 50") || !strings.Contains(got.out, "# env LONGSHORE_CONTAINERS_ORDERS_WORKERS_MAX") {
		t.Errorf("%+v", got)
	}
	bad := world{}.run(t, "config", "show", "-c", configFile(t, "containers: {orders: {source: mem://orders, order: x}}\n"))
	if bad.code != 1 || bad.out != "" || !strings.Contains(bad.err, "1 mistake in ") {
		t.Errorf("%+v", bad)
	}
}

func TestConfigWithoutAFileOrVerb(t *testing.T) {
	world{}.run(t, "config", "check", "-c", "no-such.yaml").want(t, 2, "", "error[usage]: read the configuration no-such.yaml: no such file or directory\n"+
		"help: name the file: -c FILE, or LONGSHORE_CONFIG; longshore config reference has an example\n")
	if got := (world{}).run(t, "config"); got.code != 2 || !strings.Contains(got.err, "config needs a command") {
		t.Errorf("%+v", got)
	}
	if got := (world{}).run(t, "config", "reference"); got.code != 0 || got.out != config.Reference() {
		t.Errorf("%+v", got)
	}
}
