package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
)

// F-N31
func TestFirstFailedStartEndsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		missing := errors.New("no such queue")
		m, err := New(Config{}, &part{journal: j, name: "db"}, blackHole("invoices"),
			&part{journal: j, name: "orders", phase: PhaseContainers, startTime: time.Second, startErr: missing},
			&part{journal: j, name: "audit", phase: PhaseContainers})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		err = m.Start(context.Background())
		if !errors.Is(err, missing) || errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "invoices") {
			t.Errorf("start: %v", err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %v", took)
		}
		if want := []string{"start db", "start audit", "failed orders", "stop audit", "stop db"}; !slices.Equal(j.lines, want) {
			t.Errorf("%v", j.lines)
		}
	})
}

// F-N31: a sibling that ignores the end of its start delays the error by a bounded time.
func TestFirstFailedStartIsNotHiddenByADeafSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		m, err := New(Config{}, Hook("deaf", 0, func(context.Context) error { <-forever; return nil }, nil),
			&part{journal: &journal{}, name: "orders", startErr: errors.New("no such queue")})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := m.Start(context.Background()); !errors.Is(err, errDeaf) || !strings.Contains(err.Error(), "no such queue") {
			t.Errorf("start: %v", err)
		}
		if took := time.Since(begin); took > obeyCancel {
			t.Errorf("took %v", took)
		}
		close(forever)
		synctest.Wait()
	})
}

// F-N31: the stack of a panic in Start is in the error, in the log and in what Main prints.
func TestPanicInStartKeepsItsStack(t *testing.T) {
	bad := Hook("bad", 0, panicsHere, nil)
	core, lines := observer.New(zap.ErrorLevel)
	m, err := New(Config{Logger: zap.New(core)}, bad)
	if err != nil {
		t.Fatal(err)
	}
	err = m.Start(t.Context())
	var p *longshore.Panic
	if !errors.As(err, &p) || !strings.Contains(string(p.Stack), "panicsHere") {
		t.Errorf("%v", err)
	}
	all := lines.FilterMessage("component did not start").All()
	if len(all) != 1 || !strings.Contains(fmt.Sprint(all[0].ContextMap()["stack"]), "panicsHere") {
		t.Errorf("log: %v", all)
	}
	var out bytes.Buffer
	if code := run(make(chan os.Signal), &out, []Component{bad}); code != 1 || !strings.Contains(out.String(), "panicsHere") {
		t.Errorf("exit %d: %s", code, out.String())
	}
}

func panicsHere(context.Context) error { panic("nil map") }
