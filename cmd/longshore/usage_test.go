package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/longshore-go/longshore/internal/cli"
)

// A flag with a wrong value says what it takes. A time without a unit is the usual
// mistake.
func TestWrongValuesOfFlags(t *testing.T) {
	const queue = "amqp://localhost/?queue=q"
	unit := func(n string) string { return "it needs a unit: " + n + "ms, " + n + "s, " + n + "m or " + n + "h" }
	for name, c := range map[string]struct {
		args       []string
		text, help string
	}{
		"demo for":      {[]string{"demo", "--for", "5"}, `--for "5" is not a time`, unit("5")},
		"timeout":       {[]string{"peek", queue, "--timeout", "30"}, `--timeout "30" is not a time`, unit("30")},
		"throttle for":  {[]string{"ctl", "throttle", "orders", "--permits", "0", "--for", "10"}, `--for "10" is not a time`, unit("10")},
		"since":         {[]string{"dlq", "list", queue, "--since", "2"}, `--since "2" is not a time`, unit("2")},
		"days":          {[]string{"dlq", "purge", queue, "--older", "30d"}, `--older "30d" is not a time`, "days are written in hours: 720h"},
		"handler time":  {[]string{"doctor", queue, "--handler-time", "1.5"}, `--handler-time "1.5" is not a time`, unit("1.5")},
		"again":         {[]string{"doctor", queue, "--again", "soon"}, `--again "soon" is not a time`, "write for example 250ms, 30s or 5m"},
		"doctor older":  {[]string{"doctor", queue, "--older", ""}, `--older "" is not a time`, "write for example 250ms, 30s or 5m"},
		"number":        {[]string{"dlq", "list", queue, "-n", "many"}, `--number "many" is not a whole number`, "write for example --number 10"},
		"limit":         {[]string{"doctor", queue, "--limit", "1.5"}, `--limit "1.5" is not a whole number`, "write for example --limit 10"},
		"rate":          {[]string{"ctl", "throttle", "orders", "--rate", "50/s"}, `--rate "50/s" is not a number`, "write for example --rate 2.5"},
		"switch":        {[]string{"version", "--json=ja"}, `--json "ja" is not true or false`, "write --json alone, or --json=false"},
		"seed":          {[]string{"demo", "--seed", "-1"}, `--seed "-1" is not a whole number of 0 or more`, "write for example --seed 10"},
		"no permits":    {[]string{"ctl", "throttle", "orders", "--permits", "-3"}, "--permits, --rate and --burst must be 0 or more", "0 holds everything; --add -2 takes two permits away; --clear returns to the configured limit"},
		"least > most":  {[]string{"ctl", "scale", "orders", "--workers", "9:3"}, `--workers "9:3" is not possible`, "the most is at least 1 and not less than the least; pause stops a container"},
		"no workers":    {[]string{"ctl", "scale", "orders", "--workers", "0"}, `--workers "0" is not possible`, "the most is at least 1 and not less than the least; pause stops a container"},
		"dialect":       {[]string{"mutex", "ddl"}, "--dialect is missing", "use postgres, mysql (for MariaDB too) or sqlite"},
		"empty name":    {[]string{"ctl", "pause", ""}, "CONTAINER is empty", "usage: longshore ctl pause CONTAINER [flags]"},
		"no name":       {[]string{"ctl", "drain"}, "CONTAINER is missing", "usage: longshore ctl drain CONTAINER [flags]"},
		"no record":     {[]string{"ctl", "release", "orders"}, "RECORD is missing", "usage: longshore ctl release CONTAINER RECORD [flags]"},
		"two names":     {[]string{"ctl", "why", "a", "b"}, "why takes at most 1 argument, not 2", "usage: longshore ctl why CONTAINER [flags]"},
		"empty target":  {[]string{"dlq", "list", ""}, "TARGET is empty", "usage: longshore dlq list TARGET [flags]"},
		"no id":         {[]string{"dlq", "show", queue}, "ID is missing", "usage: longshore dlq show TARGET ID [flags]"},
		"verb of ctl":   {[]string{"ctl", "paus", "orders"}, `unknown command "paus" for "longshore ctl"`, "did you mean pause?"},
		"verb of mutex": {[]string{"mutex", "tables"}, `unknown command "tables" for "longshore mutex"`, "the verbs are ddl"},
		"verb of dlq":   {[]string{"dlq", "lst"}, `unknown command "lst" for "longshore dlq"`, "did you mean list?"},
	} {
		t.Run(name, func(t *testing.T) {
			world{}.run(t, c.args...).want(t, 2, "", "error[usage]: "+c.text+"\nhelp: "+c.help+"\n")
		})
	}
	if got := (world{}).run(t, "mutex", "ddl", "--dialect", "pg"); got.code != 2 || got.out != "" ||
		got.err != "error[config]: dialect \"pg\": is not known\nhelp: use postgres, mysql (for MariaDB too) or sqlite\n" {
		t.Errorf("%+v", got)
	}
	if got := (world{}).run(t, "publish", "sqs://q?visibility=30"); !strings.Contains(got.err, "help: "+unit("30")) {
		t.Errorf("a time in a URL: %+v", got)
	}
}

// --dry-run answers on stdout, with --json as the other answers do.
func TestDryRunIsTheAnswer(t *testing.T) {
	world{}.run(t, "ctl", "pause", "orders", "--dry-run", "-q", "--admin", "a:1,b:2").want(t, 0,
		"would ask a:1: POST /api/containers/orders/pause\nwould ask b:2: POST /api/containers/orders/pause\n", "")
	world{}.run(t, "ctl", "scale", "orders", "--workers", "8", "--dry-run", "--json").want(t, 0,
		`{"dry_run":true,"instance":"127.0.0.1:8391","method":"PUT","path":"/api/containers/orders/workers","body":{"max":8,"min":8}}`+"\n", "")
	world{}.run(t, "ctl", "release", "orders", "r1", "--dry-run").want(t, 0,
		`would ask 127.0.0.1:8391: POST /api/containers/orders/records/release {"record":"r1"}`+"\n", "")
}

// The word behind a flag in --help says what to write: a type, or the form of the value.
func TestFlagsHaveTypes(t *testing.T) {
	types := map[string]bool{"": true, "string": true, "stringArray": true, "int": true, "int32": true, "uint": true, "float": true, "duration": true,
		"rate": true, "file": true, "CODE": true, "KEY": true, "address": true, "name": true, "NAME=FILE": true, "FILE": true, "[INSTANCE=]FILE": true, "URL": true, "TARGET": true, "host:port": true, "min:max": true, "name=value": true, "JSON": true, "position": true}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); !types[name] {
				t.Errorf("%s --%s %s", cmd.CommandPath(), f.Name, name)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	a := &app{streams: cli.Streams{Env: func(string) (string, bool) { return "", false }}}
	a.out = &cli.Outlet{}
	walk(a.root())
}
