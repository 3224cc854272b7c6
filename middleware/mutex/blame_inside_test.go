package mutex

import (
	"testing"

	"github.com/longshore-go/longshore"
)

// F-N10: the whole table.
func TestBlame(t *testing.T) {
	const none, retry, reject = longshore.VerdictNone, longshore.VerdictRetry, longshore.VerdictReject
	for _, c := range []struct {
		name    string
		verdict longshore.Verdict
		class   Class
		session bool
		cut     bool
		away    bool // the database cannot be reached
		want    blame
	}{
		{"its own", none, ClassOther, true, false, false, ofTheMessage},
		{"its own, slow, session kept", none, ClassOther, true, true, true, ofTheMessage},
		{"slow statement", none, ClassOther, false, true, false, ofTheMessage},
		{"slow statement, next one lost", none, ClassLost, false, true, false, ofTheMessage},
		{"black hole", none, ClassOther, false, true, true, ofTheSession},
		{"session lost", none, ClassOther, false, false, false, ofTheSession},
		{"session lost, a retry", retry, ClassOther, false, false, false, ofTheSession},
		{"session lost, rejected", reject, ClassOther, false, false, false, ofTheMessage},
		{"code of a loss", none, ClassLost, true, false, false, ofTheSession},
		{"read only", none, ClassReadOnly, true, false, false, ofTheServer},
		{"read only, a retry", retry, ClassReadOnly, true, false, false, ofTheServer},
		{"no connections", none, ClassExhausted, true, false, false, ofTheServer},
		{"login refused", none, ClassRefused, true, false, false, ofTheServer},
		{"deadlock", none, ClassRolledBack, true, false, false, ofTheMoment},
		{"deadlock, a retry", retry, ClassRolledBack, true, false, false, ofTheMessage},
		{"deadlock and lost", none, ClassRolledBack, false, false, false, ofTheSession},
		{"duplicate", none, ClassDuplicate, true, false, false, ofTheMessage},
		{"no table", none, ClassSchema, true, false, false, ofTheMessage},
		{"aborted", none, ClassAborted, true, false, false, ofTheMessage},
		{"busy", none, ClassBusy, true, false, false, ofTheMessage},
	} {
		asked := 0
		e := evidence{verdict: c.verdict, class: c.class, session: c.session, cut: c.cut, reachable: func() bool { asked++; return !c.away }}
		if got := e.judge(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		if ambiguous := c.cut && !c.session; (asked > 0) != ambiguous {
			t.Errorf("%s: the database was asked %d times", c.name, asked)
		}
	}
}
