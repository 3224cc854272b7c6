package dlq

import (
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/keytext"
)

// Filter chooses dead letters. The zero value chooses all; what is set must all
// hold.
type Filter struct {
	IDs    []string // one of these
	Reason string   // of the facts, in any case; of a Java class its last part is enough
	Key    *string
	Source string // queue or topic it came from
	Error  string // a part of the error's text, in any case
	Since  time.Time
	Before time.Time
}

// All reports whether nothing is filtered out.
func (f *Filter) All() bool {
	return len(f.IDs) == 0 && f.Reason == "" && f.Key == nil && f.Source == "" && f.Error == "" && f.Since.IsZero() && f.Before.IsZero()
}

// Match reports whether a dead letter is chosen. One whose time is not known is
// neither since nor before anything.
func (f *Filter) Match(d *longshore.Delivery, facts Facts) bool {
	switch {
	case len(f.IDs) > 0 && !slices.ContainsFunc(f.IDs, func(id string) bool { return Named(d, id) }),
		f.Reason != "" && !sameReason(facts.Reason, f.Reason),
		f.Key != nil && !keytext.Names(*f.Key, d.Key),
		f.Source != "" && facts.Source != f.Source,
		f.Error != "" && !strings.Contains(strings.ToLower(facts.Error), strings.ToLower(f.Error)),
		!f.Since.IsZero() && (facts.At.IsZero() || facts.At.Before(f.Since)),
		!f.Before.IsZero() && (facts.At.IsZero() || !facts.At.Before(f.Before)):
		return false
	}
	return true
}

func sameReason(have, want string) bool {
	return strings.EqualFold(have, want) || strings.EqualFold(have[strings.LastIndexByte(have, '.')+1:], want)
}
