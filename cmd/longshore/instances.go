package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/transport"
)

// instances are the admin APIs that a command reads at the same time.
type instances struct {
	app        *app
	tokenFiles []string
}

// flags adds those that say which tokens are used and which file names the service.
func (i *instances) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&i.app.file, "config", "c", "", "`FILE` of the service, whose admin.listen is used (default $LONGSHORE_CONFIG, else ./"+config.DefaultFile+")")
	f.StringArrayVar(&i.tokenFiles, "token-file", nil, "`[INSTANCE=]FILE` with the token, for all instances or for one; may be repeated")
}

// find returns the instances at the addresses, which may be empty: then those that ctl would
// talk to.
func (i *instances) find(addresses []string) ([]fleet.Target, error) {
	common, own, err := i.files()
	if err != nil {
		return nil, err
	}
	found, err := (&ctl{app: i.app, admin: strings.Join(addresses, ","), tokenFile: common}).targets()
	if err != nil {
		return nil, err
	}
	var targets []fleet.Target
	seen := map[string]bool{}
	for _, t := range found {
		to := t.instance()
		if _, name, ok := strings.Cut(t.base, "://"); ok {
			to.Name = name
		}
		if seen[to.Name] {
			return nil, &cli.UsageError{Text: to.Name + " is named twice", Hint: "name each instance once"}
		}
		seen[to.Name] = true
		switch file, ok := own[t.addr]; {
		case ok:
			to.Token = transport.File(file)
		case common != "":
			to.Token = transport.File(common)
		case t.tokenAt != "": // the instance makes a new one at each start
			to.Token = transport.File(t.tokenAt)
		}
		delete(own, t.addr)
		targets = append(targets, to)
	}
	for addr := range own {
		return nil, &cli.UsageError{Text: fmt.Sprintf("--token-file names the instance %q, which is not asked", addr), Hint: "write the address as it is given to the command"}
	}
	return targets, nil
}

// files separates the token file for all instances from those for one.
func (i *instances) files() (common string, own map[string]string, err error) {
	own = map[string]string{}
	for _, text := range i.tokenFiles {
		instance, file, one := strings.Cut(text, "=")
		switch {
		case !one && common != "":
			return "", nil, &cli.UsageError{Text: "--token-file names two files for all instances", Hint: "write --token-file INSTANCE=FILE"}
		case !one:
			common = text
		case instance == "" || file == "":
			return "", nil, &cli.UsageError{Text: "--token-file " + text + " has no instance or no file", Hint: "write --token-file " + admin.DefaultAddr + "=FILE"}
		default:
			own[instance] = file
		}
	}
	return common, own, nil
}
