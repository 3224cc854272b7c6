package gateway

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/history"
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
	switch items := v[list].(type) {
	case []object: // of this package
		return items
	case []any: // decoded
		for _, i := range items {
			if o, ok := i.(object); ok {
				all = append(all, o)
			}
		}
	}
	return all
}

// bare returns what a viewer without a token sees: for what instances say, what they show
// such a viewer themselves. What this version does not know may hold anything and is left out.
func bare(kind string, v object) object {
	switch kind {
	case "container":
		return as(v, admin.Container.Bare)
	case "event":
		return as(v, admin.Event.Bare)
	case "job":
		return as(v, admin.Job.Bare)
	case "history":
		return as(v, history.Series.Bare)
	case "status":
		c := only(v, "instance")
		c["containers"] = bareList("container", objects(v, "containers"))
		return c
	case "points":
		return only(v, "instance", "points") // numbers and names
	case "instance":
		c := only(v, "instance", "started", "version", "restarted", "error")
		if text(c, "error") != "" {
			c["error"] = "no answer"
		}
		return c
	}
	return object{}
}

func bareList(kind string, list []object) []object {
	items := []object{}
	for _, o := range list {
		items = append(items, bare(kind, o))
	}
	return items
}

// as passes an object through a function of its type. One that is not of this type comes out
// empty.
func as[T any](v object, pass func(T) T) object {
	raw, err := json.Marshal(v)
	var typed T
	if err != nil || json.Unmarshal(raw, &typed) != nil {
		return object{}
	}
	if raw, err = json.Marshal(pass(typed)); err != nil {
		return object{}
	}
	c, _ := decode(raw)
	return c
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
