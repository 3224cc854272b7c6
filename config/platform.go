package config

import (
	"regexp"
	"strings"
)

// platformName matches the variables that Kubernetes sets in every pod for each Service of
// the namespace, and Docker for each link: for a Service longshore-admin they begin like ours.
var platformName = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// fromPlatform reports whether a variable that sets no field comes from the platform.
func fromPlatform(name, value string) bool {
	if platformName.MatchString(name) {
		return true
	}
	scheme, _, ok := strings.Cut(value, "://")
	return ok && strings.HasSuffix(name, "_PORT") && (scheme == "tcp" || scheme == "udp" || scheme == "sctp")
}
