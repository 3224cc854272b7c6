package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/bridge/internal/ledger"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func TestMain(m *testing.M) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} { // a local server takes any
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, "x")
		}
	}
	brokertest.Main(m, brokertest.RabbitMQ, brokertest.KafkaNodes, brokertest.SQSServer)
}

// patience is for a busy machine.
const patience = 4 * time.Minute

// until waits for something to become true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}

func openLedger(t *testing.T, dir string) *bridge.Ledger {
	t.Helper()
	l, err := bridge.OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// run starts a route and stops it at the end of the test.
func run(t *testing.T, cfg bridge.Config) *bridge.Route {
	t.Helper()
	if cfg.Container.Logger == nil {
		cfg.Container.Logger = zap.NewNop()
	}
	r, err := bridge.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r) })
	return r
}

func stop(t *testing.T, r *bridge.Route) {
	t.Helper()
	if err := r.Stop(context.Background()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func put(t *testing.T, src transport.Source, msgs ...*longshore.Message) {
	t.Helper()
	out, ok := src.(transport.Outlet)
	if !ok {
		t.Fatal("no publisher")
	}
	pub, self, err := out.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pub.Publish(t.Context(), self, msgs...), pub.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func number(n int, key string) []*longshore.Message {
	msgs := make([]*longshore.Message, n)
	for i := range msgs {
		msgs[i] = &longshore.Message{ID: fmt.Sprint(key, "-", i), Key: []byte(fmt.Sprint(key, i%5)), Body: []byte(fmt.Sprint(i))}
	}
	return msgs
}

// look returns what is in a queue of the memory broker.
func look(t *testing.T, src transport.Source) []*longshore.Delivery {
	t.Helper()
	b, ok := src.(transport.Browser)
	if !ok {
		t.Fatal("no browser")
	}
	ds, _, err := b.Browse(t.Context(), "", 100_000)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func texts(ds []*longshore.Delivery) []string {
	out := make([]string, len(ds))
	for i, d := range ds {
		out[i] = string(d.Body)
	}
	return out
}

func verified(t *testing.T, dir string, target transport.Source) *bridge.Verification {
	t.Helper()
	v, err := bridge.Verify(t.Context(), dir, target)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// F-M01: what is published on one of two bridged places is on both once, and then it is quiet;
// also when something on the way strips the header.
func TestTwoWayBridgesSettleDown(t *testing.T) {
	for name, strip := range map[string]bool{"with our header": false, "header stripped": true} {
		t.Run(name, func(t *testing.T) {
			a := memory.New(memory.Config{Name: "a"}).Queue("orders", memory.QueueConfig{})
			b := memory.New(memory.Config{Name: "b"}).Queue("orders", memory.QueueConfig{})
			// Each place keeps a copy of what came: queues of the memory broker are emptied by consuming.
			atA, atB := &copies{Source: a, strip: strip}, &copies{Source: b, strip: strip}
			dir := t.TempDir()
			ledger := openLedger(t, dir)
			there := run(t, bridge.Config{Name: "there", From: atA, To: atB, Ledger: ledger})
			back := run(t, bridge.Config{Name: "back", From: atB, To: atA, Ledger: ledger})
			put(t, atA, number(100, "a")...)
			put(t, atB, number(100, "b")...)
			until(t, "all rates are 0", func() bool {
				return there.Stats().Forwarded == 100 && back.Stats().Forwarded == 100 && there.Stats().Looped == 100 && back.Stats().Looped == 100
			})
			if a, b := atA.distinct(), atB.distinct(); a != [2]int{200, 200} || b != [2]int{200, 200} {
				t.Errorf("at a %d messages of %d identities, at b %d of %d; want 200", a[0], a[1], b[0], b[1])
			}
			if v := verified(t, dir, nil); !v.OK() || v.Looped != 200 || v.Confirmed != 200 {
				t.Errorf("%v", v)
			}
		})
	}
}

// F-M01: a chain over places of one broker passes, a ring ends after one lap, and a new message
// with copied headers is not taken for one that comes round.
func TestChainsPassAndRingsEnd(t *testing.T) {
	b := memory.New(memory.Config{Name: "one"})
	queue := func(name string) *copies { return &copies{Source: b.Queue(name, memory.QueueConfig{})} }
	x, y, z := queue("x"), queue("y"), queue("z")
	ring := []*bridge.Route{run(t, bridge.Config{From: x, To: y}), run(t, bridge.Config{From: y, To: z}), run(t, bridge.Config{From: z, To: x})}
	put(t, x, number(10, "k")...)
	until(t, "the ring is quiet", func() bool { return ring[2].Stats().Looped == 10 })
	for i, r := range ring[:2] {
		if s := r.Stats(); s.Forwarded != 10 || s.Looped != 0 {
			t.Errorf("route %d: %+v", i, s)
		}
	}
	copied := z.last() // a consumer of z answers with another body and all the headers
	answer := &longshore.Message{Key: copied.Key, Body: []byte("an answer"), Headers: copied.Headers}
	put(t, z, answer)
	until(t, "the answer goes round once", func() bool { return ring[1].Stats().Looped == 1 })
	if s := ring[2].Stats(); s.Renamed != 1 || s.Forwarded != 1 {
		t.Errorf("%+v", s)
	}
	if got := x.last(); string(got.Body) != "an answer" || got.Headers.String(longshore.HeaderID) == copied.Headers.String(longshore.HeaderID) {
		t.Errorf("%q with the identity of another message: %q", got.Body, got.Headers.String(longshore.HeaderID))
	}
}

// A bridge onto itself is refused, and so is what cannot be one.
func TestWhatCannotBeARoute(t *testing.T) {
	b := memory.New(memory.Config{Name: "one"})
	q := b.Queue("orders", memory.QueueConfig{})
	for name, like := range map[string]struct {
		from, to transport.Source
		text     string
	}{
		"itself":       {q, b.Queue("orders", memory.QueueConfig{}), "same place"},
		"nothing":      {nil, nil, "From: it is nil"},
		"no publisher": {q, struct{ transport.Source }{b.Queue("x", memory.QueueConfig{})}, "To: it does not describe itself"},
	} {
		_, err := bridge.New(bridge.Config{From: like.from, To: like.to})
		if !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), like.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// F-M04: a message that the target refuses for good is parked at the source with its reason,
// later ones of its key behind it, and the others pass.
func TestUnsendableMessagesAreParkedWithTheirKey(t *testing.T) {
	src := memory.New(memory.Config{Name: "a"})
	target := memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	parked := src.Queue("orders.parked", memory.QueueConfig{})
	dir := t.TempDir()
	ledger := openLedger(t, dir)
	msgs := number(20, "k") // keys k0 to k4
	bad := &refusing{Source: to, body: "7"}
	r := run(t, bridge.Config{From: from, To: bad, Ledger: ledger})
	put(t, from, msgs...)
	until(t, "all are moved or parked", func() bool { return r.Stats().Forwarded == 17 && len(look(t, parked)) == 3 })
	if got := texts(look(t, parked)); !slices.Equal(got, []string{"7", "12", "17"}) { // key k2
		t.Errorf("parked: %v", got)
	}
	if why := look(t, parked)[0].Headers.String(container.HeaderDeadReason); why != string(longshore.CodeTooLarge) {
		t.Errorf("the reason is %q", why)
	}
	stop(t, r)
	// The cause is mended: what is parked goes on in its order, and the key is free again.
	bad.body = ""
	rest := run(t, bridge.Config{Name: "rest", From: parked, To: bad})
	until(t, "what was parked arrives", func() bool { return rest.Stats().Forwarded == 3 })
	if err := ledger.ReleaseKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	r = run(t, bridge.Config{From: from, To: bad, Ledger: ledger})
	put(t, from, &longshore.Message{ID: "late", Key: msgs[7].Key, Body: []byte("22")})
	until(t, "the key is free", func() bool { return r.Stats().Forwarded == 1 })
	var key []string
	for _, d := range look(t, to) {
		if string(d.Key) == string(msgs[7].Key) {
			key = append(key, string(d.Body))
		}
	}
	if !slices.Equal(key, []string{"2", "7", "12", "17", "22"}) {
		t.Errorf("order of the key: %v", key)
	}
}

// An outage of the target stops the intake and costs no message an attempt.
func TestAnOutageOfTheTargetParksNothing(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	target.Declare("orders")
	dir := t.TempDir()
	target.FailPublish("orders", 40, &longshore.Error{Code: longshore.CodeUnreachable, Op: "publish", Err: errors.New("connection refused")})
	r := run(t, bridge.Config{From: from, To: to, Ledger: openLedger(t, dir), OpenFor: 5 * time.Millisecond})
	put(t, from, number(200, "k")...)
	until(t, "all arrive", func() bool { return len(look(t, to)) == 200 })
	if s := r.Stats(); s.Parked != 0 || s.Forwarded != 200 {
		t.Errorf("%+v", s)
	}
	stop(t, r)
	if v := verified(t, dir, to); !v.OK() || v.Confirmed != 200 || v.Reread != 200 || v.Foreign != 0 {
		t.Errorf("%v; missing %v, extra %v, changed %v", v, v.Missing, v.Extra, v.Changed)
	}
}

// quota is a disk that is full after some bytes, until it is extended. What it takes of the last
// write is part of it.
type quota struct {
	ledger.File
	left *atomic.Int64
}

func (q *quota) Write(b []byte) (int, error) {
	if fits := q.left.Add(-int64(len(b))) + int64(len(b)); fits < int64(len(b)) {
		n, err := q.File.Write(b[:max(0, min(fits, int64(len(b)))/2)])
		q.left.Store(0)
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return q.File.Write(b)
}

// F-M06: what is not recorded is not moved: with a ledger that cannot be written the route
// holds, and goes on where it was once there is room; the record of it is whole.
func TestAFullDiskHoldsTheRoute(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	target.Declare("orders")
	dir := t.TempDir()
	disk := &atomic.Int64{}
	disk.Store(2000)
	l := openLedger(t, dir)
	l.Through(func(f ledger.File) ledger.File { return &quota{f, disk} })
	r := run(t, bridge.Config{From: from, To: to, Ledger: l, Identity: bridge.ByMessageID, OpenFor: 5 * time.Millisecond})
	put(t, from, number(500, "k")...)
	until(t, "the route holds", func() bool {
		return r.Progress().Limit == bridge.ByTarget && r.Container().Bottleneck().By == container.ByHold
	})
	if n, m := len(look(t, to)), verified(t, dir, nil); n == 0 || n > 90 || m.Torn > 0 {
		t.Errorf("%d at the target with a full disk, %d bytes torn", n, m.Torn)
	}
	disk.Store(1 << 30)
	until(t, "all arrive", func() bool { return verified(t, dir, nil).Confirmed == 500 })
	stop(t, r)
	if v := verified(t, dir, to); !v.OK() || v.Torn > 0 || r.Stats().Parked > 0 || src.Inspect("orders").Ready > 0 {
		t.Errorf("%v", v)
	}
}

// Verify finds what is missing, changed and added at the target, and names it.
func TestVerifyNamesWhatDiffers(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	target.Declare("orders")
	dir := t.TempDir()
	r := run(t, bridge.Config{From: from, To: to, Ledger: openLedger(t, dir), Identity: bridge.ByMessageID})
	put(t, from, number(10, "k")...)
	until(t, "all arrive", func() bool { return len(look(t, to)) == 10 })
	stop(t, r)
	if v := verified(t, dir, to); !v.OK() || v.Confirmed != 10 || v.Keys != 5 {
		t.Fatalf("%v", v)
	}
	ds := look(t, to)
	target.Purge("orders")
	changed := ds[3].Received().Clone()
	changed.Body = []byte("tampered with")
	forged := ds[4].Received().Clone()
	forged.Headers = slices.DeleteFunc(forged.Headers, func(h longshore.Header) bool { return h.Name == longshore.HeaderID })
	forged.Headers = append(forged.Headers, longshore.Header{Name: longshore.HeaderID, Value: "forged"})
	for _, d := range append(ds[1:3], ds[4:]...) {
		put(t, to, d.Received())
	}
	put(t, to, changed, forged, &longshore.Message{ID: "native"})
	v := verified(t, dir, to)
	if v.OK() || !slices.Equal(v.Missing, []string{"k-0"}) || !slices.Equal(v.Changed, []string{"k-3"}) || !slices.Equal(v.Extra, []string{"forged"}) || v.Foreign != 1 {
		t.Errorf("missing %v, changed %v, extra %v, foreign %d", v.Missing, v.Changed, v.Extra, v.Foreign)
	}
}

// Verify lists with identities what was parked, what came round, what arrived more than once and
// out of order; it may run while routes write, and one that is given up can be repeated.
func TestVerifyListsWhatIsNoted(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	target.Declare("orders")
	src.Declare("orders.parked")
	dir := t.TempDir()
	l := openLedger(t, dir)
	r := run(t, bridge.Config{Name: "there", From: from, To: &refusing{Source: to, body: "3"}, Ledger: l, Identity: bridge.ByMessageID})
	put(t, from, number(10, "k")...)
	until(t, "all are moved or parked", func() bool { return r.Stats().Forwarded == 8 && r.Stats().Parked == 2 })
	stop(t, r)
	all := look(t, to)
	put(t, to, all[0].Received()) // a crash would repeat it so
	back := run(t, bridge.Config{Name: "back", From: to, To: from, Ledger: l, Identity: bridge.ByMessageID})
	until(t, "all come round", func() bool { return back.Stats().Looped == 9 })
	stop(t, back)
	for _, d := range append(all[:2:2], all...) {
		put(t, to, d.Received())
	}
	given, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := bridge.Verify(given, dir, to); !errors.Is(err, context.Canceled) {
		t.Errorf("a verify that is given up: %v", err)
	}
	v := verified(t, dir, to)
	if !v.OK() || !slices.Equal(v.Aside, []string{"k-3", "k-8"}) || len(v.Round) != 8 || !slices.Equal(v.Repeated, []string{"k-0", "k-1"}) {
		t.Errorf("%v; parked %v, looped %v, repeated %v", v, v.Aside, v.Round, v.Repeated)
	}
	if at := v.At["k-1"]; len(at) != 2 || at[0].Topic != "orders" || at[0].Offset == at[1].Offset {
		t.Errorf("k-1 is at %v", at)
	}
	handled := func(yield func(string, error) bool) {
		for _, id := range []string{"k-0", "k-1", "k-2", "k-4", "k-5", "k-6", "k-9", "other"} {
			if !yield(id, nil) {
				return
			}
		}
	}
	if e, err := bridge.VerifyEffects(t.Context(), dir, handled); err != nil || e.Confirmed != 8 || e.Handled != 7 || !slices.Equal(e.Unhandled, []string{"k-7"}) {
		t.Errorf("%+v, %v", e, err)
	}
}

// Verify against live traffic: what is on its way is not missing, and the target is compared up
// to its end of then.
func TestVerifyWhileARouteRuns(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	target.Declare("orders")
	dir := t.TempDir()
	run(t, bridge.Config{From: from, To: &slow{to, 5 * time.Millisecond}, Ledger: openLedger(t, dir), Identity: bridge.ByMessageID})
	live, end := context.WithCancel(t.Context())
	var producer sync.WaitGroup
	producer.Go(func() {
		for i := 0; live.Err() == nil && i < 100_000; i += 20 {
			put(t, from, number(20, fmt.Sprint("p", i, "k"))...)
			select {
			case <-live.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	for i := range 3 {
		until(t, "some are moved", func() bool { return len(look(t, to)) > 50+i*100 })
		if v := verified(t, dir, to); !v.OK() || v.Confirmed == 0 || v.Reread < v.Confirmed {
			t.Errorf("%v; missing %v, extra %v", v, v.Missing, v.Extra)
		}
	}
	end()
	producer.Wait()
}

func TestIdentityRules(t *testing.T) {
	b := memory.New(memory.Config{})
	for name, like := range map[string]struct {
		rule bridge.IdentityRule
		m    longshore.Message
		want string
	}{
		"message id":        {bridge.ByMessageID, longshore.Message{ID: "1"}, "1"},
		"header as text":    {bridge.ByHeader("x"), longshore.Message{Headers: longshore.Headers{{Name: "x", Value: "t"}}}, "t"},
		"header as bytes":   {bridge.ByHeader("x"), longshore.Message{Headers: longshore.Headers{{Name: "x", Value: []byte("b")}}}, "b"},
		"header as integer": {bridge.ByHeader("x"), longshore.Message{Headers: longshore.Headers{{Name: "x", Value: int32(7)}}}, "7"},
		"no such header":    {bridge.ByHeader("x"), longshore.Message{}, ""},
	} {
		b.Purge("q")
		q := b.Queue("q", memory.QueueConfig{})
		put(t, q, &like.m)
		if got := like.rule(look(t, q)[0]); got != like.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	q := b.Queue("bodies", memory.QueueConfig{})
	put(t, q, &longshore.Message{Body: []byte("1")}, &longshore.Message{Body: []byte("1")}, &longshore.Message{Body: []byte("2")})
	ds := look(t, q)
	if one, again, two := bridge.ByBody(ds[0]), bridge.ByBody(ds[1]), bridge.ByBody(ds[2]); one != again || one == two {
		t.Errorf("by body: %q, %q, %q", one, again, two)
	}
}

func TestALedgerThatCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bridge.OpenLedger(file); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("%v", err)
	}
}

const verifying = "BRIDGE_TEST_VERIFY"

// TestVerifyThatIsToBeKilled is the process that TestAKilledVerifyCanBeRepeated kills.
func TestVerifyThatIsToBeKilled(t *testing.T) {
	dir := os.Getenv(verifying)
	if dir == "" {
		t.Skip("run by TestAKilledVerifyCanBeRepeated")
	}
	for n := 0; ; n++ {
		verified(t, dir, nil)
		if n == 0 {
			if err := os.WriteFile(dir+".begun", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A verify that is killed leaves the ledger as it was, and the next one says the same.
func TestAKilledVerifyCanBeRepeated(t *testing.T) {
	t.Parallel()
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	target.Declare("orders")
	dir := filepath.Join(t.TempDir(), "ledger")
	r := run(t, bridge.Config{From: from, To: to, Ledger: openLedger(t, dir), Identity: bridge.ByMessageID})
	put(t, from, number(2000, "k")...)
	until(t, "all arrive", func() bool { return len(look(t, to)) == 2000 })
	stop(t, r)
	files := func() string {
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, name := range names {
			text, err := os.ReadFile(name) //nolint:gosec // of this test's ledger
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&all, "%s %x\n", name, text)
		}
		return all.String()
	}
	before, whole := files(), verified(t, dir, to)
	for i := range 3 {
		cmd := spawn(t, "TestVerifyThatIsToBeKilled", verifying+"="+dir)
		until(t, "it verifies", func() bool { _, err := os.Stat(dir + ".begun"); return err == nil })
		<-time.After(time.Duration(i) * 3 * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if err := os.Remove(dir + ".begun"); err != nil {
			t.Fatal(err)
		}
	}
	if again := verified(t, dir, to); again.String() != whole.String() || !again.OK() || again.Confirmed != 2000 || files() != before {
		t.Errorf("%v, first %v", again, whole)
	}
}
