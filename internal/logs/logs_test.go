package logs

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQuietCountsWhatItHolds(t *testing.T) {
	var q Quiet
	begin := time.Unix(1000, 0)
	for _, c := range []struct {
		after  time.Duration
		stands int
		due    bool
	}{{0, 1, true}, {time.Second, 0, false}, {59 * time.Second, 0, false}, {Every, 3, true}, {Every + time.Second, 0, false}, {3 * Every, 2, true}} {
		if stands, due := q.Due(begin.Add(c.after)); stands != c.stands || due != c.due {
			t.Errorf("after %v: %d, %v; want %d, %v", c.after, stands, due, c.stands, c.due)
		}
	}
	if Repeated(1) != zap.Skip() || Repeated(3) != zap.Int("repeated", 3) {
		t.Error("a line that stands for itself counts nothing")
	}
}

func TestFailure(t *testing.T) {
	if fs := Failure(nil); fs != nil {
		t.Errorf("%v", fs)
	}
	fs := Failure(&longshore.Error{Code: longshore.CodeAuth, Op: "open q", Err: errors.New("refused"), Hint: "check the user"})
	if own := Failure(&longshore.Error{Code: longshore.CodeAuth, Err: &longshore.Error{Fields: []longshore.Field{{Name: "user", Value: "app"}}}}); own[len(own)-1] != zap.String("user", "app") {
		t.Errorf("%v", own)
	}
	if len(fs) != 3 || fs[0] != zap.String("code", "auth") || fs[1].Key != "error" || fs[2] != zap.String("help", "check the user") {
		t.Errorf("%v", fs)
	}
}
