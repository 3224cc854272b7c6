package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func checkText(t *testing.T, text string, environ ...string) []Problem {
	t.Helper()
	_, problems := Options{Environ: append([]string{}, environ...)}.parse("longshore.yaml", []byte(text), true)
	return problems
}

// bomb is a mapping whose aliases lead to more and more of it.
func bomb(merge bool) string {
	var b strings.Builder
	b.WriteString("x0: &x0 {a: 1, b: 2}\n")
	for i := 1; i <= 12; i++ {
		one := fmt.Sprintf("*x%d", i-1)
		if merge {
			fmt.Fprintf(&b, "x%d: &x%d {<<: [%s], k%d: 1}\n", i, i, strings.Join([]string{one, one, one, one, one, one, one, one}, ", "), i)
			continue
		}
		fmt.Fprintf(&b, "x%d: &x%d [%s]\n", i, i, strings.Join([]string{one, one, one, one, one, one, one, one}, ", "))
	}
	b.WriteString("containers: {a: {source: mem://a}}\ndefaults: *x12\n")
	return b.String()
}

// F-N24: a file that is too much is refused with its line, soon and in little memory. The
// time is bounded by a factor of what an ordinary file takes, for machines differ.
func TestFileThatIsTooMuchIsRefusedWithItsLine(t *testing.T) {
	for name, tc := range map[string]struct {
		text, where, says string
	}{
		"nested aliases":     {bomb(false), "longshore.yaml:6:", "too many keys and values"},
		"nested merge keys":  {bomb(true), "longshore.yaml:6:", "too many keys and values"},
		"an alias to itself": {"a: 1\nb: &b [*b]\n", "longshore.yaml:2:4", "too many keys and values"},
		"depth in flow":      {"a: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n", "longshore.yaml:1:", "in each other"},
		"depth in blocks":    {"b: 1\na:\n  " + strings.Repeat("- ", 5000) + "1\n", "longshore.yaml:3:", "in each other"},
		"depth beyond all":   {"b: 1\na: " + strings.Repeat("[", 15000) + "\n", "longshore.yaml:2:", "exceeded max depth"},
		"size":               {"# " + strings.Repeat(strings.Repeat("x", 1000)+"\n# ", 1100), "longshore.yaml", "larger than 1024 KiB"},
		"lines":              {strings.Repeat("- \n", 200_000), "longshore.yaml:32769:1", "too many keys and values"},
		"a long line":        {"b: 1\na: " + strings.Repeat("x", 20_000), "longshore.yaml:2:1", "longer than 16 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			problems := checkText(t, tc.text)
			runtime.ReadMemStats(&after)
			if len(problems) != 1 || !strings.HasPrefix(problems[0].Where, tc.where) || !strings.Contains(problems[0].Text, tc.says) {
				t.Errorf("%+v", problems)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
				t.Errorf("allocated %d MiB", used>>20)
			}
		})
	}
}

// F-N24: an endless file ends.
func TestEndlessFileIsRefused(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("there is no /dev/zero")
	}
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
}

// F-N24: the time for a large file grows with it, and not faster: ten times the containers
// take less than forty times as long.
func TestManyContainersAreReadInProportion(t *testing.T) {
	read := func(n int) time.Duration {
		var b strings.Builder
		b.WriteString("containers:\n")
		for i := range n {
			fmt.Fprintf(&b, "  c%d: {source: \"mem://q%d\", workers: {max: 5}}\n", i, i)
		}
		best := time.Hour
		for range 3 {
			begin := time.Now()
			if problems := checkText(t, b.String()); len(problems) > 0 {
				t.Fatal(problems[0].Text)
			}
			best = min(best, time.Since(begin))
		}
		return best
	}
	few, many := read(300), read(3000)
	t.Logf("300 containers: %v, 3000: %v", few, many)
	if many > 40*few {
		t.Errorf("300 containers: %v, 3000: %v", few, many)
	}
}

// Syntax errors are where they are, and show nothing of the file.
func TestSyntaxErrorsAreReportedAtTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"a: b: c\n":                      "longshore.yaml:1:5",
		"b: 1\na: *nope\n":               "longshore.yaml:2:4",
		"x: 1\na: \"unterminated\n":      "longshore.yaml:2:4",
		"x: 1\na: [1, 2\n":               "longshore.yaml:2:4",
		"a:\n\t- b\n":                    "longshore.yaml:2:1",
		"\n\na: x\x01\n":                 "longshore.yaml:3:5",
		"\n\na: x\xff\n":                 "longshore.yaml:3:5",
		"a: @x\n":                        "longshore.yaml:1:4",
		"a: 'x' y\n":                     "longshore.yaml:1:8",
		"a: !foo!bar x\n":                "longshore.yaml:1:4",
		"%YAML 2.0\n---\na: 1\n":         "longshore.yaml:1:1",
		"# c\n%YAML 1.2x\n---\na: 1\n":   "longshore.yaml:2:",
		"a: 1\nb:\n  - x\n c\n":          "longshore.yaml:4:2",
		"b: 1\nsecret: *hunter2 oops: [": "longshore.yaml:2:",
	} {
		problems := checkText(t, text)
		if len(problems) != 1 || problems[0].Code != CodeSyntax || !strings.HasPrefix(problems[0].Where, want) {
			t.Errorf("%q: %+v, want %s", text, problems, want)
		}
		for i := range problems {
			if strings.Contains(problems[i].Error(), "hunter2") || strings.Contains(problems[i].Error(), "nope") {
				t.Errorf("it quotes the file: %v", problems[i].Error())
			}
		}
	}
}

func TestAnyYAML1VersionIsRead(t *testing.T) {
	for _, directive := range []string{"%YAML 1.1", "%YAML 1.2", "\ufeff# a comment\n%YAML 1.2 # and one", "%YAML 1.3"} {
		if problems := checkText(t, directive+"\n---\ncontainers: {a: {source: mem://a}}\n"); len(problems) > 0 {
			t.Errorf("%q: %v", directive, problems[0].Error())
		}
	}
}

// A section with nothing below it is an error, at its key.
func TestSectionWithNothingBelowIsAnError(t *testing.T) {
	container := "containers:\n  a:\n    source: mem://a\n"
	for text, where := range map[string]string{
		container + "    breaker:\n":                                 "longshore.yaml:4:5",
		container + "    workers:\n":                                 "longshore.yaml:4:5",
		container + "admin:\n":                                       "longshore.yaml:4:1",
		container + "telemetry: ~\n":                                 "longshore.yaml:4:1",
		container + "lifecycle: null\n":                              "longshore.yaml:4:1",
		container + "admin:\n  operators:\n":                         "longshore.yaml:5:3",
		container + "defaults:\n":                                    "longshore.yaml:4:1",
		"brokers:\n  k:\n    url: kafka://k\n    tls:\n" + container: "longshore.yaml:4:5",
	} {
		problems := checkText(t, text)
		if len(problems) != 1 || problems[0].Code != CodeMissing || problems[0].Where != where || !strings.Contains(problems[0].Text, "nothing below") {
			t.Errorf("%s: %+v", text, problems)
		}
	}
	if problems := checkText(t, container+"    breaker: {}\nadmin: {}\n"); len(problems) > 0 {
		t.Errorf("an empty mapping means the defaults: %v", problems)
	}
}

// Names cannot write to the terminal.
func TestNamesWithInvisibleCharactersAreRefusedAndEscaped(t *testing.T) {
	for name, shown := range map[string]string{`a\e[2Jb`: `a\x1b[2Jb`, `a\nb`: `a\x0ab`, `a\u202eb`: `a\u202eb`} {
		for _, text := range []string{"containers: {\"" + name + "\": {source: mem://a}}\n", "containers: {a: {source: mem://a, \"" + name + "\": 1}}\n"} {
			problems := checkText(t, text)
			if len(problems) == 0 {
				t.Fatalf("%s: nothing is wrong", text)
			}
			if !strings.Contains(problems[0].Text, shown) {
				t.Errorf("%q is not shown in %q", shown, problems[0].Text)
			}
			for i := range problems {
				p := &problems[i]
				if all := p.Text + p.Hint + p.Path + p.Excerpt + p.Error(); strings.ContainsFunc(all, hiddenRune) {
					t.Errorf("%q", all)
				}
			}
		}
	}
}

// A token that the admin API refuses at its start fails the check.
func TestShortTokensFailTheCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "containers: {a: {source: mem://a}}\nadmin:\n  operators: {anna: env:ANNA, ben: env:BEN, cy: env:CY}\n  viewers: {wall: \"file:" + file + "\"}\n"
	problems := checkText(t, text, "ANNA=short", "BEN=0123456789abcdef")
	var got []string
	for i := range problems {
		if !problems[i].Warning {
			got = append(got, problems[i].Where)
		}
		if strings.Contains(problems[i].Error()+problems[i].Excerpt, "short\n") {
			t.Errorf("%v shows the token", problems[i].Error())
		}
	}
	if err := errors.Join(fatal(problems)...); len(got) != 2 || got[0] != "longshore.yaml:3:21" || !strings.HasPrefix(got[1], "longshore.yaml:4:") {
		t.Errorf("%v: %v", got, err)
	}
}
