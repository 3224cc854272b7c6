package doctor

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// rabbitArguments names every argument in which the queue differs from what the source
// declares. RabbitMQ's own refusal names only the first.
func rabbitArguments(f *findings, have, want map[string]any) {
	if want == nil {
		return
	}
	all := maps.Clone(have)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, want)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		is, has := have[name]
		should, wanted := want[name]
		if name == "x-queue-type" && (!wanted || !has && fmt.Sprint(should) == "classic") || has == wanted && plain(is) == plain(should) {
			continue
		}
		differ = append(differ, fmt.Sprintf("%s is %s (declared: %s)", name, valueOf(is, has), valueOf(should, wanted)))
	}
	if len(differ) > 0 {
		f.add("queue", Bad, "delete the queue when it is empty, or change the declaration", "the queue has other arguments than the container declares, which cannot subscribe: %s", strings.Join(differ, ", "))
	}
}

func valueOf(v any, is bool) string {
	if !is {
		return "not set"
	}
	return cut(plain(v))
}

// plain is a value as text, whatever type of number it has: JSON has only one.
func plain(v any) string {
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return fmt.Sprint(v)
}

func cut(s string) string {
	const most = 64
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
