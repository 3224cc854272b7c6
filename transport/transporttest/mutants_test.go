package transporttest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// mutants lists wrong transports: the bug, the check that must name it, and
// those that may notice it too; "*" is a bug so coarse that any check may.
var mutants = []struct{ bug, check, also string }{
	{"", "", ""}, // none: all checks pass
	{"receive-over-max", "receive-max", "*"},
	{"receive-loses-on-cancel", "receive-canceled-loses-nothing", ""},
	{"receive-returns-nothing", "receive-waits", "*"},
	{"receive-after-close-canceled", "close-ends-calls", ""},
	{"order-broken", "key-order", "key-order-handed-over key-order-redelivered loss-down release"},
	{"second-return-goes-behind", "key-order-handed-over", ""},
	{"origin-missing", "receive", ""},
	{"ack-is-not-sent", "ack", "*"},
	{"ack-nacks", "ack", "*"},
	{"ack-is-asked-twice", "settle-concurrently", "*"},
	{"dead-context-refused", "ack-with-dead-context", ""},
	{"nack-acks", "nack", "attempts attempts-uncounted cancel-keeps-nacked identity nack-delay redelivered settle-twice"},
	{"nack-ignores-delay", "nack-delay", ""},
	{"delay-unlimited", "nack-delay", ""},
	{"nack-always-counts", "attempts-uncounted", ""},
	{"nack-opens-again", "settle-twice", "attempts attempts-uncounted cancel-keeps-nacked identity nack nack-delay redelivered"},
	{"attempt-missing", "attempts", ""},
	{"attempt-believed", "attempts-brought-along", ""},
	{"redelivered-missing", "redelivered", "loss-redelivers"},
	{"close-forgets-redelivered", "redelivered", "loss-redelivers"},
	{"identity-changes", "identity", ""},
	{"identity-missing", "identity", "properties"},
	{"observer-called-inside-verb", "settle-failed", "flush-after-drop"},
	{"release-counts", "release-uncounted", ""},
	{"nack-behind-cancel-acks", "cancel-keeps-nacked", ""},
	{"reject-acks", "reject", ""},
	{"reject-requeues", "reject", ""},
	{"extend-refused", "extend", ""},
	{"failure-swallowed", "settle-failed", "flush-after-drop"},
	{"failure-with-wrong-verb", "settle-failed", "flush-after-drop"},
	{"flush-does-nothing", "flush-confirms", "flush-after-drop flush-bounded flush-waits latency settle-failed"},
	{"flush-returns-early", "flush-waits", "flush-after-drop flush-bounded latency settle-failed"},
	{"flush-hides-failures", "flush-after-drop", "flush-bounded settle-failed"},
	{"flush-ignores-context", "flush-bounded", ""},
	{"cancel-loses-buffer", "cancel-hands-out-buffer", ""},
	{"cancel-closes", "cancel-keeps-settleable", "*"},
	{"cancel-closes-settlement-path", "cancel-keeps-settleable", "cancel-hands-out-buffer cancel-keeps-nacked cancel-stops-the-broker cancel-under-load latency release"},
	{"cancel-does-not-reach-broker", "cancel-stops-the-broker", "cancel-ends-waiting-receive cancel-under-load release"},
	{"release-drops", "release", "cancel-under-load"},
	{"release-keeps", "release", ""},
	{"close-acks", "close-gives-back", "close-sends-accepted key-order-handed-over key-order-redelivered latency redelivered settle-twice stale-delivery"},
	{"close-keeps-deliveries", "close-gives-back", "close-bounded"},
	{"close-drops-accepted", "close-sends-accepted", "opens-paused"},
	{"close-ignores-context", "close-bounded", ""},
	{"close-twice-fails", "close-ends-calls", "close-after-loss"},
	{"close-tells-down", "close-ends-calls", "loss-down taken-back"},
	{"close-leaks-goroutine", "goroutines", ""},
	{"settle-after-close-accepted", "close-gives-back", "close-bounded"},
	{"loss-untold", "loss-observed", "settle-after-loss taken-back"},
	{"loss-told-twice", "loss-observed", ""},
	{"loss-without-cause", "loss-observed", ""},
	{"loss-keeps-contexts", "loss-contexts", "loss-observed"},
	{"loss-accepts-late-settlements", "settle-after-loss", "loss-contexts loss-observed taken-back"},
	{"settle-hangs-after-loss", "settle-after-loss", "loss-contexts loss-observed taken-back"},
	{"loss-untyped", "loss-receive", "loss-down"},
	{"lease-loss-untold", "taken-back", ""},
	{"duplicate-takes-lease", "duplicate", ""},
	{"lease-not-kept", "lease-kept", ""},
	{"down-never", "loss-down", "close-after-loss flush-after-drop flush-confirms flush-waits loss-redelivers stale-delivery"},
	{"down-twice", "loss-down", ""},
	{"stale-tag-settles-new-delivery", "stale-delivery", "close-bounded close-gives-back loss-contexts loss-observed open-twice opens-paused"},
	{"open-kills-the-other", "open-twice", "opens-paused consumers"},
	{"open-context-kills", "open-context", "*"},
	{"missing-is-made", "open-missing", ""},
	{"auth-untyped", "open-auth", "open-missing"},
	{"probe-always-well", "probe", ""},
	{"base-ignored", "base-context", ""},
	{"headers-unordered", "headers-order", ""},
	{"header-kinds-lost", "headers", ""},
	{"nil-body-becomes-empty", "nil-and-empty", ""},
	{"body-as-text", "bodies", "nil-and-empty"},
	{"properties-lost", "properties", ""},
	{"publish-hides-partial-failure", "publish-partial", ""},
	{"publish-fails-all-for-one", "publish-partial", ""},
	{"publish-returns-before-confirm", "publish-confirmed", "latency"},
	{"publish-hides-refusal", "publish-failure", "publish-closed publish-confirmed"},
	{"publish-twice", "publish", ""},
	{"publish-loses-every-20th", "publish-concurrent", ""},
	{"publisher-stays-open", "publish-closed", ""},
	{"window-ignored", "window", ""},
	{"resize-does-nothing", "resize", ""},
	{"pause-does-nothing", "pause", ""},
	{"pause-cancels", "pause", ""},
	{"pause-gives-back", "stays", ""},
	{"opens-unpaused", "opens-paused", ""},
	{"backlog-is-zero", "backlog", ""},
	{"browse-takes", "browse", ""},
	{"browse-never-ends", "browse", ""},
	{"operations-without-nack", "operations", ""},
	{"operations-all-fail", "operations", ""},
	{"progress-commits-what-is-handed-out", "progress", ""},
	{"progress-never-commits", "progress", ""},
	{"progress-end-is-position", "progress", ""},
	{"progress-position-is-end", "progress", ""},
	{"progress-repeats-a-partition", "progress", ""},
	{"consumers-lists-only-itself", "consumers", ""},
	{"consumers-calls-all-its-own", "consumers", ""},
	{"consumers-keeps-the-closed", "consumers", ""},
	{"consumers-without-time", "consumers", ""},
	{"consumers-total-too-small", "consumers", ""},
	{"consumers-shares-an-id", "consumers", ""},
	{"consumers-refuses-without-a-reason", "consumers", ""},
}

func TestEveryMutantIsCaughtByItsCheck(t *testing.T) {
	checks := allChecks()
	for _, m := range mutants {
		name := m.bug
		if name == "" {
			name = "none"
		}
		t.Run(name, func(t *testing.T) {
			var caught []string
			for _, c := range checks {
				failed, log := judge(t, c, func(t testing.TB) Harness { return mutantHarness(t, m.bug) })
				if failed {
					caught = append(caught, c.name)
					t.Logf("%s: %s", c.name, strings.Join(log, "\n    "))
				}
			}
			if m.check != "" && !slices.Contains(caught, m.check) {
				t.Errorf("not caught by %s, but by %v", m.check, caught)
			}
			also := strings.Fields(m.also)
			for _, c := range caught {
				if c != m.check && m.also != "*" && !slices.Contains(also, c) {
					t.Errorf("also caught by %s, which has nothing to do with it", c)
				}
			}
		})
	}
}

// What a standard queue may do, to bring a message a second time, is no mistake of its
// headers.
func TestARepeatedMessageIsNoMistakeOfItsHeaders(t *testing.T) {
	for _, c := range contentChecks() {
		if failed, log := judge(t, c, func(t testing.TB) Harness { return mutantHarness(t, "publish-twice") }); failed {
			t.Errorf("%s: %s", c.name, strings.Join(log, "\n    "))
		}
	}
}

// mutantHarness gives the checks a mutant of the memory transport.
func mutantHarness(t testing.TB, bug string) Harness {
	b := memory.New(memory.Config{})
	source := func(t testing.TB, cfg memory.QueueConfig) transport.Source {
		name := Name(t)
		cfg.DeadLetter = name + ".dlq"
		if bug == "delay-unlimited" || bug == "" {
			cfg.MaxDelay = time.Hour
		}
		cfg.SingleActive = bug == "pause-gives-back"
		src, _ := b.Queue(name, cfg).(fullSource)
		return &mutant{fullSource: src, bug: bug, b: b, t: t}
	}
	nameOf := func(src transport.Source) string {
		m, _ := src.(*mutant)
		return m.name()
	}
	h := Harness{
		Operations: []longshore.OperationKind{longshore.OperationAck, longshore.OperationNack},
		Source:     func(t testing.TB) transport.Source { return source(t, memory.QueueConfig{}) },
		Batched: func(t testing.TB) transport.Source {
			return source(t, memory.QueueConfig{SettleLinger: time.Hour})
		},
		Windowed: func(t testing.TB) (transport.Source, int) {
			if bug == "window-ignored" {
				return source(t, memory.QueueConfig{}), 5
			}
			return source(t, memory.QueueConfig{Prefetch: 5}), 5
		},
		Leased: func(t testing.TB) (transport.Source, time.Duration) {
			return source(t, memory.QueueConfig{Lease: time.Minute, KeepLease: bug != "lease-not-kept"}), time.Minute
		},
		Missing: func(t testing.TB) transport.Source {
			return source(t, memory.QueueConfig{MustExist: bug != "missing-is-made"})
		},
		BadAuth: func(t testing.TB) transport.Source {
			src := source(t, memory.QueueConfig{})
			b.FailOpen(nameOf(src), -1, &longshore.Error{Code: longshore.CodeAuth, Op: "open", Err: errors.New("login refused")})
			return src
		},
		Drop:     func(_ testing.TB, src transport.Source) { b.Drop(nameOf(src)) },
		TakeBack: func(_ testing.TB, src transport.Source) { b.TakeBack(nameOf(src)) },
		Duplicate: func(_ testing.TB, src transport.Source) { // memory has no duplicates to be wrong about
			if bug == "duplicate-takes-lease" {
				b.TakeBack(nameOf(src))
			}
		},
		Latency: func(_ testing.TB, _ transport.Source, d time.Duration) { b.DelayAll(d) },
		Stall: func(testing.TB, transport.Source) func() {
			b.DelayAll(time.Hour)
			return func() { b.DelayAll(0) }
		},
		FailSettle:  func(testing.TB, transport.Source) { b.FailSettle(1, errors.New("disk full")) },
		FailPublish: func(_ testing.TB, src transport.Source) { b.FailPublish(nameOf(src), 1, errors.New("disk full")) },
		Depth: func(_ testing.TB, src transport.Source) (int, int) {
			i := b.Inspect(nameOf(src))
			return i.Ready + i.Delayed, i.Unsettled
		},
		DeadLettered: func(_ testing.TB, src transport.Source) int {
			return b.Inspect(nameOf(src) + ".dlq").Ready
		},
	}
	return h
}
