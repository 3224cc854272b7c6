package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/longshore-go/longshore/internal/cli"
)

// Every flag that takes an id, a key, a name, a text or a password takes it as it is: no comma
// divides it, no quote or backslash means anything, and a value may begin with a dash.
func TestFlagsTakeTextLiterally(t *testing.T) {
	// Lists of addresses have no text of the user's in them.
	lists := []string{"longshore demo --kafka"}
	hostile := []string{`1,2`, `a "quoted" 'one'`, "two\nlines", "-n", "--force", `back\slash`, " spaces ", "=", "x=y", "§,\t\"", "%2C", "$HOME", ""}
	a := &app{streams: cli.Streams{Env: func(string) (string, bool) { return "", false }}}
	a.out = &cli.Outlet{}
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name := cmd.CommandPath() + " --" + f.Name
			kind := f.Value.Type()
			if kind != "string" && kind != "stringArray" {
				if kind == "stringSlice" && !slices.Contains(lists, name) {
					t.Errorf("%s divides its values at commas", name)
				}
				return
			}
			seen++
			for _, v := range hostile {
				for _, args := range [][]string{{"--" + f.Name + "=" + v}, {"--" + f.Name, v}} {
					if err := cmd.ParseFlags(args); err != nil {
						t.Errorf("%s %q: %v", name, v, err)
						continue
					}
					got := f.Value.String()
					if list, ok := f.Value.(pflag.SliceValue); ok {
						all := list.GetSlice()
						got = all[len(all)-1]
					}
					if got != v {
						t.Errorf("%s %q became %q", name, v, got)
					}
				}
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(a.root())
	if seen < 40 {
		t.Errorf("only %d flags were tried", seen)
	}
}
