package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
)

// A shared value is obeyed within the time between two looks; one that cannot be
// read, or is gone, changes nothing.
func TestPolledValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := keys("k1")[0]
		var place struct {
			sync.Mutex
			doc []byte
			err error
		}
		lay := func(doc []byte, err error) {
			place.Lock()
			defer place.Unlock()
			place.doc, place.err = doc, err
		}
		limit := throttle.NewPermits(20)
		var told events
		core, logs := observer.New(zap.WarnLevel)
		p, err := throttle.NewPoller(func(context.Context) ([]byte, error) {
			place.Lock()
			defer place.Unlock()
			return place.doc, place.err
		}, 0,
			throttle.FleetConfig{Scope: "shop", Keys: []throttle.Key{key}, OnEvent: told.add, Logger: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		p.Add("orders", limit)
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		permits := func() int {
			n, _ := limit.Limits()
			return n
		}
		seal := func(d throttle.Directive) []byte {
			wait(time.Millisecond)
			raw, err := throttle.Seal(t.Context(), "shop", key, d)
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		first := seal(throttle.Directive{Permits: ptr(5)})
		special := seal(throttle.Directive{Permits: ptr(7), Target: throttle.Target{Container: "orders"}, ExpiresAt: time.Now().Add(time.Hour)})
		lay(fmt.Appendf(nil, "[%s, %s]", first, special), nil)
		wait(10 * time.Second)
		synctest.Wait()
		if permits() != 7 {
			t.Errorf("%d permits: the one that names the container comes first", permits())
		}
		lay(nil, errors.New("access denied"))
		wait(time.Minute)
		if st := p.Status(); permits() != 7 || st.Connected || st.Error != "access denied" || len(told.kinds(throttle.FleetLost)) != 1 {
			t.Errorf("%d permits, %+v", permits(), st)
		}
		lay(nil, nil)
		wait(time.Minute)
		if permits() != 7 || !p.Status().Connected {
			t.Errorf("%d permits while there is no value", permits())
		}
		if lost, back := logs.FilterMessage("throttle control lost").Len(), logs.FilterMessage("throttle control works again").All(); lost != 1 || len(back) != 1 || back[0].Level != zap.WarnLevel {
			t.Errorf("%d alarms, all-clears %v", lost, back)
		}
		lay([]byte("  \n"), nil)
		wait(time.Hour)
		if permits() != 5 {
			t.Errorf("%d permits after the special one expired", permits())
		}
		lay([]byte(strings.Replace(string(seal(throttle.Directive{Permits: ptr(1)})), `"permits":1`, `"permits":0`, 1)), nil)
		wait(time.Minute)
		if n := told.kinds(throttle.FleetRefused); permits() != 5 || len(n) == 0 || n[0] != "signature" {
			t.Errorf("%d permits, refused %v", permits(), n)
		}
		lay(seal(throttle.Directive{Unset: true}), nil)
		wait(time.Minute)
		if permits() != 20 {
			t.Errorf("%d permits after it was taken back", permits())
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Everything that is wrong with a configuration is told at once.
func TestBadFleetConfiguration(t *testing.T) {
	_, err := throttle.NewPoller(nil, -1, throttle.FleetConfig{Scope: "a/b", Instance: "*", Keys: []throttle.Key{{ID: "k"}}, MinPermits: 20, MaxPermits: 10})
	for _, part := range []string{"fetch is nil", "Scope", "Instance", "Keys[0]", "MinPermits 20"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not told in: %v", part, err)
		}
	}
	if _, err := throttle.NewFleet(nil, throttle.FleetConfig{}); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("no source: %v", err)
	}
	short := throttle.Key{ID: "k", Secret: transport.Static("short")}
	if _, err := throttle.Seal(t.Context(), "", short, throttle.Directive{Permits: ptr(1)}); err == nil || strings.Contains(err.Error(), "\"short\"") {
		t.Errorf("a short secret: %v", err)
	}
}
