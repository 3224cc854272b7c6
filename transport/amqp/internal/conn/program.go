package conn

import (
	"cmp"
	"runtime/debug"
)

// program names the binary and its version to the broker, so that longshore doctor can
// tell an older version of a service from the current one.
func program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	return cmp.Or(info.Path, info.Main.Path) + " " + cmp.Or(revision, info.Main.Version, "unknown") + dirty
}
