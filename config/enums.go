package config

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-go/longshore/internal/edit"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// size is a number of bytes, written 65536, 64KiB or 64KB.
type size int64

// secret is a reference, or a value that should not be in a file.
type secret struct {
	transport.Secret
	written bool // in the file itself
}

// order is a word of its field, or header:NAME.
type order string

const headerPrefix = "header:"

// start is a word of its field, or a time.
type start string

// startForm is how a time is written.
const startForm = "2026-01-02T15:04:05Z"

// at is the place at which a new group starts. The text was checked when it was decoded.
func (s start) at() kafka.Start {
	if s == "latest" {
		return kafka.Latest
	}
	if t, err := time.Parse(time.RFC3339, string(s)); err == nil {
		return kafka.StartAt(t)
	}
	return kafka.Earliest
}

// table holds the arguments of RabbitMQ's queues and consumers.
type table map[string]any

// wrong is what a value is not, and what to write instead.
type wrong struct{ text, hint string }

func (w *wrong) Error() string { return w.text }

// parseDuration insists on a unit: a bare 30 is seconds in one program and milliseconds in the next.
func parseDuration(text, none string) (time.Duration, error) {
	if none != "" && text == none {
		return -1, nil
	}
	if text == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, &wrong{"is `" + text + "`, which is not a time", edit.TimeHint(text) + or(none, ", or ")}
	}
	return d, nil
}

// or is the separator and the word; nothing if there is no word.
func or(word, separator string) string {
	if word == "" {
		return ""
	}
	return separator + word
}

// units of sizes, the longest suffixes first.
//
//nolint:gochecknoglobals // a constant table
var units = []struct {
	suffix string
	factor int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1},
}

// parseSize knows both kinds of units, since 1 MB and 1 MiB differ by five per cent.
func parseSize(text string) (size, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err == nil && v*float64(u.factor) < math.MaxInt64 && v*float64(u.factor) > math.MinInt64 {
			return size(v * float64(u.factor)), nil
		}
		break
	}
	return 0, &wrong{"is `" + text + "`, which is not a size", "write for example 65536, 64KiB or 64MiB"}
}

// String uses the largest unit that shows the number exactly.
func (s size) String() string {
	for i := 2; i >= 0; i-- {
		if u := units[i]; s != 0 && int64(s)%u.factor == 0 {
			return strconv.FormatInt(int64(s)/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// parseInt takes the word for none as -1, which is how the code spells it.
func parseInt(text, none string) (int64, error) {
	if none != "" && text == none {
		return -1, nil
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 32)
	if err != nil {
		what := "which is not a whole number"
		if f, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(f) > math.MaxInt32 {
			what = "which is too large"
		}
		return 0, &wrong{"is `" + text + "`, " + what, "write for example 10" + or(none, ", or ")}
	}
	return v, nil
}

// parseFloat says what to write where a number is followed by a unit: rates are always per second.
func parseFloat(text, none string) (float64, error) {
	if none != "" && text == none {
		return -1, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		if number, ok := strings.CutSuffix(text, "/s"); ok {
			if _, err := strconv.ParseFloat(number, 64); err == nil {
				return 0, &wrong{"is `" + text + "`, which is not a number", "write " + number + ": it is per second as it is"}
			}
		}
		return 0, &wrong{"is `" + text + "`, which is not a number", "write for example 0.5" + or(none, ", or ")}
	}
	return v, nil
}

// parseBool takes YAML's true and false and refuses its other words, which are strings in YAML 1.2
// and booleans in 1.1.
func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "yes", "on", "1", "y":
		return false, &wrong{"is `" + text + "`, which is neither true nor false", "write true"}
	case "no", "off", "0", "n":
		return false, &wrong{"is `" + text + "`, which is neither true nor false", "write false"}
	}
	return false, &wrong{"is `" + text + "`, which is neither true nor false", "write true or false"}
}

// argument is a value as RabbitMQ takes it.
func argument(n *yaml.Node) (any, error) {
	switch n.Tag {
	case "!!int":
		v, err := strconv.ParseInt(n.Value, 0, 64)
		return v, err
	case "!!float":
		v, err := strconv.ParseFloat(n.Value, 64)
		return v, err
	case "!!bool":
		return parseBool(n.Value)
	}
	return n.Value, nil
}
