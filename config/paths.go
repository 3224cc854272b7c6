package config

import "strings"

// sep stands between the parts of a path inside this package: names may have dots.
const sep = "\x1f"

// join is the path of a key below another; the file itself has the path "".
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + sep + key
}

func joinAll(parts ...string) string { return strings.Join(parts, sep) }

// parent is the path above; "" for a key at the top.
func parent(path string) string {
	i := strings.LastIndex(path, sep)
	return path[:max(i, 0)]
}

func last(path string) string { return path[strings.LastIndex(path, sep)+1:] }

// top is the section that a path begins with.
func top(path string) string {
	first, _, _ := strings.Cut(path, sep)
	return first
}

// dotted is a path for people.
func dotted(path string) string { return strings.ReplaceAll(path, sep, ".") }

// relative is a path for people without the name it begins with: the place says
// which container or broker is meant.
func relative(path string) string {
	parts := strings.Split(path, sep)
	switch {
	case (parts[0] == "containers" || parts[0] == "brokers") && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "defaults" && len(parts) > 1:
		parts = parts[1:]
	}
	return strings.Join(parts, ".")
}
