package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/docs"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestUsageErrors(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		err  string
	}{
		"unknown command": {[]string{"dmeo"}, "error[usage]: unknown command \"dmeo\" for \"longshore\"\nhelp: did you mean demo?\n"},
		"no idea at all":  {[]string{"frobnicate"}, "error[usage]: unknown command \"frobnicate\" for \"longshore\"\nhelp: see longshore --help\n"},
		"unknown flag":    {[]string{"version", "--fast"}, "error[usage]: unknown flag: --fast\nhelp: usage: longshore version [flags]\n"},
		"argument":        {[]string{"version", "now"}, "error[usage]: version takes no arguments, and got \"now\"\nhelp: usage: longshore version [flags]\n"},
		"color":           {[]string{"version", "--color", "blue"}, "error[usage]: --color blue is not known\nhelp: use auto, always or never\n"},
		"timeout":         {[]string{"version", "--timeout", "0s"}, "error[usage]: --timeout must be more than 0\nhelp: write for example --timeout 30s\n"},
		"loud and quiet":  {[]string{"version", "-q", "-v"}, "error[usage]: -q and -v exclude each other\nhelp: give one of them\n"},
		"code":            {[]string{"explain", "notfound"}, "error[usage]: unknown code \"notfound\"\nhelp: did you mean not-found? longshore explain lists all codes\n"},
		"too short":       {[]string{"demo", "--for", "1ms"}, "error[usage]: --for must be at least 1s\nhelp: the steps need some time\n"},
		"flavor":          {[]string{"amqp-server", "--flavor", "2"}, "error[usage]: --flavor 2 is not known\nhelp: use 3.10, 4.0 or 4.3\n"},
	} {
		t.Run(name, func(t *testing.T) { world{}.run(t, c.args...).want(t, 2, "", c.err) })
	}
}

func TestErrorsAsJSON(t *testing.T) {
	got := world{}.run(t, "explain", "notfound", "--json")
	var p struct{ Code, Message, Help string }
	if err := json.Unmarshal([]byte(got.err), &p); err != nil {
		t.Fatalf("%v in %q", err, got.err)
	}
	if got.code != 2 || got.out != "" || p.Code != "usage" || p.Message == "" || p.Help == "" {
		t.Errorf("code %d, out %q, %+v", got.code, got.out, p)
	}
	if got := (world{}).run(t, "version", "--json", "--nonsense"); !strings.HasPrefix(got.err, `{"code":"usage"`) {
		t.Errorf("a wrong flag after --json prints %q", got.err)
	}
}

func TestColours(t *testing.T) {
	const escape = "\x1b["
	for name, c := range map[string]struct {
		world world
		args  []string
		want  bool
	}{
		"pipe":                     {world{}, nil, false},
		"terminal":                 {world{terminal: true}, nil, true},
		"terminal, NO_COLOR":       {world{terminal: true, env: map[string]string{"NO_COLOR": "1"}}, nil, false},
		"terminal, NO_COLOR empty": {world{terminal: true, env: map[string]string{"NO_COLOR": ""}}, nil, true},
		"dumb terminal":            {world{terminal: true, env: map[string]string{"TERM": "dumb"}}, nil, false},
		"pipe, forced":             {world{env: map[string]string{"CLICOLOR_FORCE": "1"}}, nil, true},
		"pipe, forced 0":           {world{env: map[string]string{"CLICOLOR_FORCE": "0"}}, nil, false},
		"NO_COLOR wins":            {world{env: map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}}, nil, false},
		"flag never":               {world{terminal: true}, []string{"--color", "never"}, false},
		"flag wins over NO_COLOR":  {world{env: map[string]string{"NO_COLOR": "1"}}, []string{"--color=always"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			out := c.world.run(t, append([]string{"explain", "auth"}, c.args...)...)
			bad := c.world.run(t, append([]string{"explain", "nonsense-code"}, c.args...)...)
			if got := strings.Contains(out.out, escape); got != c.want {
				t.Errorf("escape codes on stdout: %v", got)
			}
			if got := strings.Contains(bad.err, escape); got != c.want {
				t.Errorf("escape codes on stderr: %v", got)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	got := world{}.run(t, "explain", "error[auth]")
	if got.code != 0 || got.err != "" || !strings.HasPrefix(got.out, "auth: The broker refused the login.\n\n") || !strings.Contains(got.out, "\nDo") {
		t.Errorf("%+v", got)
	}
	for _, page := range docs.ErrorPages() {
		if out := (world{}).run(t, "explain", page.Code).out; strings.Contains(out, "**") || strings.Contains(out, "](") {
			t.Errorf("Markdown on a terminal: %s", out)
		}
	}
	list := world{}.run(t, "explain")
	if list.code != 0 || !strings.Contains(list.out, "not-found       The queue, topic or exchange does not exist.\n") {
		t.Errorf("%+v", list)
	}
	var page struct{ Code, Summary, Text string }
	if err := json.Unmarshal([]byte(world{}.run(t, "explain", "auth", "--json").out), &page); err != nil || page.Code != "auth" || page.Text == "" {
		t.Errorf("%v %+v", err, page)
	}
}

func TestVersion(t *testing.T) {
	if got := (world{}).run(t, "version"); got.code != 0 || !strings.HasPrefix(got.out, "longshore ") || got.err != "" {
		t.Errorf("%+v", got)
	}
	var v versionInfo
	if err := json.Unmarshal([]byte(world{}.run(t, "version", "--json").out), &v); err != nil || v.Go == "" {
		t.Errorf("%v %+v", err, v)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := (world{}).run(t, "completion", shell); got.code != 0 || !strings.Contains(got.out, "longshore") {
			t.Errorf("%s: code %d, %d bytes, %s", shell, got.code, len(got.out), got.err)
		}
	}
	got := world{}.run(t, "__complete", "explain", "")
	if got.code != 0 || !strings.Contains(got.out, "not-found\tThe queue") {
		t.Errorf("%+v", got)
	}
}

func TestHelpNamesNoVerbThatDoesNotExist(t *testing.T) {
	got := world{}.run(t, "--help")
	if got.code != 0 || got.err != "" {
		t.Fatalf("%+v", got)
	}
	for _, later := range []string{"verify", "cutover", "plan", " run "} {
		if strings.Contains(got.out, later) {
			t.Errorf("the help names %q", later)
		}
	}
}

func TestCompletionWithoutAKnownShellIsAMistake(t *testing.T) {
	for text, args := range map[string][]string{
		"SHELL is missing":         {"completion"},
		`no completion for "tcsh"`: {"completion", "tcsh"},
	} {
		if got := (world{}).run(t, args...); got.code != 2 || got.out != "" || !strings.Contains(got.err, text) {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestMistakesAreSaidInOurWords(t *testing.T) {
	for text, args := range map[string][]string{
		`demo takes no arguments, and got "x"`:     {"demo", "x"},
		"explain takes at most 1 argument, not 2":  {"explain", "a", "b"},
		`unknown command "nope"`:                   {"help", "nope"},
		`--for "x" is not a time` + "\n":           {"demo", "--for", "x"},
		"--to is empty":                            {"publish", "x", "-", "--to", ""},
		`unknown flag: --foo`:                      {"peek", "x", "--foo"},
		`the format ends in "%"`:                   {"peek", "x", "--format", "%"},
		"-q and -v exclude each other":             {"version", "-q", "-v"},
		`unknown command "pubish" for "longshore"`: {"pubish"},
		"unknown shorthand flag: 'z' in -z":        {"version", "-z"},
		"--timeout must be more than 0":            {"version", "--timeout", "-1s"},
		"--color sometimes is not known":           {"version", "--color", "sometimes"},
		`flag needs an argument: --addr`:           {"amqp-server", "--addr"},
		"--flavor 2 is not known":                  {"amqp-server", "--flavor", "2"},
		`unknown code "nope"`:                      {"explain", "nope"},
		"peek takes at most 1 argument, not 2":     {"peek", "a", "b"},
		"publish takes at most 2 arguments, not 3": {"publish", "a", "b", "c"},
		"read /: is a directory":                   {"publish", "x", "/"},
		`no completion for "tcsh"`:                 {"completion", "tcsh"},
	} {
		got := queue(memory.New(memory.Config{})).run(t, args...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, "error[usage]: ") || !strings.Contains(got.err, text) || !strings.Contains(got.err, "\nhelp: ") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := (world{}).run(t, "help", "peek"); got.code != 0 || !strings.Contains(got.out, "longshore peek TARGET") {
		t.Errorf("%+v", got)
	}
}
