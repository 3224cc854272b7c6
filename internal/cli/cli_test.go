package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func coded(c longshore.Code) error {
	return &longshore.Error{Code: c, Op: "open x", Err: errors.New("no"), Hint: "do y"}
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing":           {nil, 0},
		"any error":         {errors.New("x"), 1},
		"missing queue":     {coded(longshore.CodeNotFound), 1},
		"usage":             {&UsageError{Text: "x"}, 2},
		"wrapped usage":     {fmt.Errorf("x: %w", &UsageError{Text: "x"}), 2},
		"address":           {coded(longshore.CodeBadAddress), 2},
		"unreachable":       {coded(longshore.CodeUnreachable), 6},
		"login":             {fmt.Errorf("x: %w", coded(longshore.CodeAuth)), 6},
		"joined":            {errors.Join(coded(longshore.CodeTLS), errors.New("x")), 6},
		"timeout":           {context.DeadlineExceeded, 6},
		"conflict":          {coded(longshore.CodeExclusive), 7},
		"own code":          {&CodeError{Code: 3}, 3},
		"own code, a cause": {&CodeError{Code: 2, Err: coded(longshore.CodeAuth)}, 2},
		"Ctrl-C":            {&Interrupted{Signal: os.Interrupt}, 130},
		"SIGTERM":           {fmt.Errorf("x: %w", &Interrupted{Signal: syscall.SIGTERM}), 143},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want []Problem
	}{
		"one": {coded("auth"), []Problem{{"auth", "open x: no", "do y", nil, 0}}},
		"several": {errors.Join(coded("auth"), errors.Join(&UsageError{"a", "b"}, nil), coded("vhost")),
			[]Problem{{"auth", "open x: no", "do y", nil, 0}, {"usage", "a", "b", nil, 0}, {"vhost", "open x: no", "do y", nil, 0}}},
		"wrapped": {fmt.Errorf("peek: %w", coded("auth")), []Problem{{"auth", "peek: longshore: open x: no", "do y", nil, 0}}},
		"plain":   {errors.New("longshore: something"), []Problem{{"internal", "something", "", nil, 0}}},
		"code":    {fmt.Errorf("no more: %w", longshore.CodeDrain), []Problem{{"drain", "no more: drain", "", nil, 0}}},
		"fields":  {&longshore.Error{Code: "auth", Op: "open x", Fields: []longshore.Field{{Name: "user", Value: "app"}}}, []Problem{{"auth", "open x", "", map[string]string{"user": "app"}, 0}}},
		"nothing": {&CodeError{Code: 1}, nil},
	} {
		if got := Problems(c.err); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestWhatFailsAThousandTimesIsSaidOnce(t *testing.T) {
	var errs []error
	for range 1000 {
		errs = append(errs, coded("refused"))
	}
	for json, want := range map[bool]string{
		false: "error[refused]: open x: no (1000 times)\nhelp: do y\nerror[usage]: a\nhelp: b\n",
		true:  `{"code":"refused","message":"open x: no","help":"do y","times":1000}` + "\n" + `{"code":"usage","message":"a","help":"b"}` + "\n",
	} {
		var out strings.Builder
		NewPrinter(Streams{Err: &out}, Options{JSON: json}).Failure(errors.Join(append(errs, &UsageError{"a", "b"})...))
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}

func TestErrorsCannotControlTheTerminal(t *testing.T) {
	var out strings.Builder
	p := NewPrinter(Streams{Err: &out}, Options{})
	p.Failure(&longshore.Error{Code: "refused", Err: errors.New("said \x1b]0;owned\x07 \u202e and\nmore"), Hint: "see\rthis"})
	want := `error[refused]: said \x1b]0;owned\x07 \u202e and\nmore` + "\n" + `help: see\rthis` + "\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestPrintableLeavesTextAlone(t *testing.T) {
	for _, s := range []string{"", "plain", "Grüße, 世界 ▁█", `{"a":"b"}`} {
		if got := Printable(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got := Printable("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("invalid UTF-8 became %q", got)
	}
}

func TestSignals(t *testing.T) {
	signals := make(chan os.Signal)
	w := Watch(signals)
	defer w.Stop()
	signals <- os.Interrupt
	<-w.Soft.Done()
	if w.Hard.Err() != nil {
		t.Fatal("the first signal ended everything")
	}
	signals <- syscall.SIGTERM
	<-w.Hard.Done()
	for ctx, want := range map[context.Context]int{w.Soft: 130, w.Hard: 143} {
		if got := ExitCode(context.Cause(ctx)); got != want {
			t.Errorf("exit code %d, want %d", got, want)
		}
	}
	w.Stop() // harmless when repeated
}
