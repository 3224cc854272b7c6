package gateway

import (
	"bytes"
	"encoding/json"
	"slices"
)

// object is JSON of an instance. It stays as it came, so that a newer instance is shown with
// all that it says.
type object = map[string]any

// decode reads an object without rounding its numbers.
func decode(raw []byte) (object, bool) {
	var v object
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v) == nil && v != nil
}

// named writes the name of the instance into an answer and into what it lists: the names
// that instances give themselves may be the same.
func named(v object, instance string) {
	if _, ok := v["instance"]; ok || v["containers"] != nil || v["name"] != nil {
		v["instance"] = instance
	}
	for _, list := range []string{"containers", "points", "jobs"} {
		for _, o := range objects(v, list) {
			o["instance"] = instance
		}
	}
	if c, ok := v["container"].(object); ok {
		c["instance"] = instance
	}
	if j, ok := v["job"].(object); ok {
		j["instance"] = instance
	}
}

// objects are those of a list in an answer.
func objects(v object, list string) (all []object) {
	items, _ := v[list].([]any)
	for _, i := range items {
		if o, ok := i.(object); ok {
			all = append(all, o)
		}
	}
	return all
}

// bare leaves out the texts, which may name ids, keys and people: what the admin API shows
// without a token. Objects are copied where they change.
func bare(kind string, v object) object {
	switch kind {
	case "event":
		return only(v, "id", "time", "instance", "container", "kind", "code", "attempt", "from", "to")
	case "instance":
		if v = without(v); text(v, "error") != "" {
			v["error"] = "no answer"
		}
		return v
	case "job":
		return without(v, "by", "reason", "error")
	case "container":
		v = without(v, "reason")
		for part, keep := range map[string][]string{"limited": {"by", "since"}, "paused": {"at"}, "throttle": {"permits", "rate", "burst"}, "workers": {"now", "busy", "min", "max"}} {
			if o, ok := v[part].(object); ok {
				v[part] = only(o, keep...)
			}
		}
		return v
	case "status":
		return bareList(v, "containers", "container")
	case "history":
		return bareList(v, "scaled", "mark")
	case "mark":
		return without(v, "reason")
	}
	return v
}

func bareList(v object, list, kind string) object {
	v = without(v)
	items := []any{}
	for _, o := range objects(v, list) {
		items = append(items, bare(kind, o))
	}
	v[list] = items
	return v
}

func only(v object, names ...string) object {
	c := object{}
	for name, x := range v {
		if slices.Contains(names, name) {
			c[name] = x
		}
	}
	return c
}

func without(v object, names ...string) object {
	c := object{}
	for name, x := range v {
		if !slices.Contains(names, name) {
			c[name] = x
		}
	}
	return c
}
