package container

import (
	"errors"
	"testing"

	"github.com/longshore-go/longshore"
)

// What an operator's verb does with a record in each state: the code of the refusal, or
// none.
func TestOperatorVerbs(t *testing.T) {
	const ok = longshore.Code("")
	free := recordFacts{place: true, owned: true}
	for _, tc := range []struct {
		name                       string
		change                     func(*recordFacts)
		retry, deadLetter, release longshore.Code
	}{
		{"parked", func(f *recordFacts) { f.state = HeldParked }, ok, ok, ok},
		{"moving", func(f *recordFacts) { f.state = HeldMoving }, ok, ok, ok},
		{"ready", func(f *recordFacts) { f.state = HeldReady }, longshore.CodeState, ok, ok},
		{"behind", func(f *recordFacts) { f.state = HeldBehind }, longshore.CodeState, ok, ok},
		{"running", func(f *recordFacts) { f.state = HeldRunning }, longshore.CodeState, longshore.CodeState, longshore.CodeState},
		{"stuck", func(f *recordFacts) { f.state = HeldStuck }, longshore.CodeState, longshore.CodeState, longshore.CodeState},
		{"running, interrupted", func(f *recordFacts) { f.state, f.interrupt = HeldRunning, true }, longshore.CodeState, ok, ok},
		{"running, interrupted, lost", func(f *recordFacts) { f.state, f.interrupt, f.owned = HeldRunning, true, false }, longshore.CodeState, ok, ok},
		{"no place", func(f *recordFacts) { f.state, f.place = HeldParked, false }, ok, longshore.CodeState, ok},
		{"ordered", func(f *recordFacts) { f.state, f.ordered = HeldParked, true }, ok, ok, longshore.CodeUnsupported},
		{"on a log", func(f *recordFacts) { f.state, f.stays = HeldParked, true }, ok, ok, longshore.CodeUnsupported},
		{"lost", func(f *recordFacts) { f.state, f.owned = HeldParked, false }, ok, longshore.CodeState, longshore.CodeState},
	} {
		f := free
		tc.change(&f)
		for v, want := range map[operatorVerb]longshore.Code{retryVerb: tc.retry, deadLetterVerb: tc.deadLetter, releaseVerb: tc.release} {
			if err := v.refusal(f); longshore.CodeOf(err) != want || (err == nil) != (want == ok) {
				t.Errorf("%v what is %s: %v, want %q", v, tc.name, err, want)
			}
		}
	}
	var e *longshore.Error
	if err := retryVerb.refusal(recordFacts{state: HeldBehind, head: "m-1"}); !errors.As(err, &e) || e.Hint != `retry "m-1": it goes first` {
		t.Errorf("the first one is not named: %v", err)
	}
}
