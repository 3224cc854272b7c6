package container_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// browse reads what a queue holds.
func browse(t testing.TB, b *memory.Broker, q string) []*longshore.Delivery {
	t.Helper()
	src, ok := b.Queue(q, memory.QueueConfig{}).(transport.Browser)
	if !ok {
		t.Fatal("no browser")
	}
	ds, _, err := src.Browse(context.Background(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func send(t testing.TB, b *memory.Broker, dest string, msgs ...*longshore.Message) {
	t.Helper()
	pub, err := b.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close(context.Background())
	if err := pub.Publish(context.Background(), dest, msgs...); err != nil {
		t.Fatal(err)
	}
}

var always = container.Redelivery{MaxAttempts: 1}

// F-G02: what fails before the handler is a verdict too, and arrives unchanged.
func TestForeignMessagesReachTheDeadLetterPlaceUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		bodies := [][]byte{nil, {}, []byte("<html>"), []byte("{"), []byte(`{"ID":1}`), []byte(`{"ID":"a"}{"ID":"b"}`), {0xC3, 0x28}, []byte("null x"), bytes.Repeat([]byte("x"), 1<<20), []byte("\x00")}
		for i, body := range bodies {
			send(t, b, "q", &longshore.Message{ID: fmt.Sprint(i), Body: body, ContentType: "text/foreign", Headers: longshore.Headers{
				{Name: "twice", Value: "1"}, {Name: "twice", Value: int64(2)}, {Name: "longshore-attempt", Value: []any{"odd"}}, {Name: "nil", Value: nil}}})
		}
		h := longshore.Typed(longshore.JSON{}, func(context.Context, struct{ ID string }, *longshore.Delivery) error {
			t.Error("the handler ran")
			return nil
		})
		c := start(t, b.Queue("q", memory.QueueConfig{}), h, container.Config{DeadLetter: container.DeadLetter{To: "dead"}})
		wait(time.Minute)
		stop(t, c)
		dead := browse(t, b, "dead")
		if len(dead) != len(bodies) {
			t.Fatalf("%d dead of %d", len(dead), len(bodies))
		}
		for _, d := range dead {
			var i int
			_, _ = fmt.Sscan(d.ID, &i)
			if !bytes.Equal(d.Body, bodies[i]) || (d.Body == nil) != (bodies[i] == nil) {
				t.Errorf("body %d changed", i)
			}
			if vs := d.Headers.Values("twice"); len(vs) != 2 || vs[0] != "1" || vs[1] != int64(2) || !d.Headers.Has("nil") || d.ContentType != "text/foreign" {
				t.Errorf("headers of %d: %v", i, d.Headers)
			}
			reason := "undecodable"
			if bodies[i] == nil {
				reason = "tombstone"
			}
			if d.Headers.String(container.HeaderDeadReason) != reason || d.Headers.String(container.HeaderDeadSource) != "q" {
				t.Errorf("reason of %d: %v", i, d.Headers)
			}
		}
	})
}

// F-G04: headers do not grow per hop, and long texts are cut at a rune boundary.
func TestDeadLetterHeadersDoNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q0", "m")
		long := errors.New("x" + strings.Repeat("日本語", 100_000))
		var sizes []int
		for i := range 50 {
			c := start(t, b.Queue(fmt.Sprint("q", i), memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return long }),
				container.Config{Name: "c", Redelivery: always, DeadLetter: container.DeadLetter{To: fmt.Sprint("q", i+1), MaxHops: 1000}})
			wait(time.Second)
			stop(t, c)
			d := browse(t, b, fmt.Sprint("q", i+1))[0]
			text := d.Headers.String(container.HeaderDeadError)
			if len(text) > 512 || len(text) < 500 || !utf8.ValidString(text) {
				t.Fatalf("hop %d: error text of %d bytes", i, len(text))
			}
			for _, h := range d.Headers {
				if len(d.Headers.Values(h.Name)) != 1 {
					t.Fatalf("hop %d: %s more than once", i, h.Name)
				}
			}
			sizes = append(sizes, len(d.Headers))
		}
		if sizes[0] != sizes[49] {
			t.Errorf("headers grew: %v", sizes)
		}
	})
}

// F-G04: if space is short the diagnostics go, the move stays.
func TestDiagnosticsGiveWayToTheMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{MaxMessageBytes: 100})
		send(t, b, "q", &longshore.Message{ID: "m", Body: make([]byte, 90)})
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return errBad }),
			container.Config{Redelivery: always, DeadLetter: container.DeadLetter{To: "dead"}})
		wait(time.Second)
		stop(t, c)
		if dead := browse(t, b, "dead"); len(dead) != 1 || len(dead[0].Body) != 90 {
			t.Errorf("%d dead", len(dead))
		}
	})
}

// F-G03, F-B05: while the destination is away the message stays, counted, and
// moves once when it is back; its handler is not called again.
func TestDeadLetterDestinationAway(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			b.FailPublish("dead", -1, failure(longshore.CodeUnroutable))
			publish(t, b, "q", "k:1", "k:2")
			var runs, told atomic.Int32
			c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
				runs.Add(1)
				if string(d.Body) == "k:1" {
					return errBad
				}
				return nil
			}), container.Config{Order: order, Redelivery: always, DeadLetter: container.DeadLetter{To: "dead"}, OnEvent: func(e container.Event) {
				if e.Kind == container.EventDeadLetterFailed && errors.Is(e.Err, longshore.CodeDeadLetter) && errors.Is(e.Err, longshore.CodeUnroutable) {
					told.Add(1)
				}
			}})
			wait(10 * time.Second)
			if st := c.Stats(); told.Load() < 3 || st.DeadLetterFailures < 3 || b.Inspect("q").Unsettled == 0 || st.Rejected != 0 {
				t.Errorf("%d events, %+v", told.Load(), st)
			}
			if ordered := order == container.ByKey; ordered != (runs.Load() == 1) {
				t.Errorf("%d runs while the head waits to be moved", runs.Load())
			}
			b.FailPublish("dead", 0, nil)
			wait(5 * time.Minute)
			stop(t, c)
			if runs.Load() != 2 || b.Inspect("dead").Published != 1 || c.Stats().Rejected != 1 {
				t.Errorf("%d runs, %d dead", runs.Load(), b.Inspect("dead").Published)
			}
			wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 2")
		})
	}
}

// F-B06: a broker that takes nothing gets its workers back from us in time; what
// succeeds keeps flowing, and all resumes unaided.
func TestPublisherThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(20)...)
		for i := range 40 {
			publish(t, b, "q", fmt.Sprint("good", i))
		}
		b.Delay(memory.OpPublish, time.Hour)
		var good atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if d.Body[0] == 'm' {
				return errBad
			}
			good.Add(1)
			return nil
		}), container.Config{Workers: container.Workers{Min: 4, Max: 4}, Redelivery: always, DeadLetter: container.DeadLetter{To: "dead"}})
		wait(11 * time.Second)
		if st := c.Stats(); good.Load() != 40 || st.Parked+st.InFlight != 20 || !st.Live {
			t.Errorf("%d good ones done, %+v", good.Load(), st)
		}
		b.Delay(memory.OpPublish, 0)
		wait(10 * time.Minute)
		stop(t, c)
		if n := b.Inspect("dead").Published; n != 20 {
			t.Errorf("%d dead", n)
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 60")
	})
}

func TestTerminalPolicies(t *testing.T) {
	native := memory.QueueConfig{DeadLetter: "broker-dead"}
	cases := []struct {
		name  string
		queue memory.QueueConfig
		dl    container.DeadLetter
		where string
		fails longshore.Code
	}{
		{"native is the default where it exists", native, container.DeadLetter{}, "broker-dead", ""},
		{"native by name", native, container.DeadLetter{Policy: container.DeadLetterNative}, "broker-dead", ""},
		{"to wins over native", native, container.DeadLetter{To: "ours"}, "ours", ""},
		{"keep is the default elsewhere", memory.QueueConfig{}, container.DeadLetter{}, "kept", ""},
		{"discard", memory.QueueConfig{}, container.DeadLetter{Policy: container.DeadLetterDiscard}, "gone", ""},
		{"native without a place fails the start", memory.QueueConfig{}, container.DeadLetter{Policy: container.DeadLetterNative}, "", longshore.CodeUnsupported},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", "m")
				c, err := container.New(b.Queue("q", tc.queue), handle(func(*longshore.Delivery) error { return longshore.Reject(errBad) }), quiet(container.Config{DeadLetter: tc.dl}))
				if err != nil {
					t.Fatal(err)
				}
				err = c.Start(context.Background())
				if tc.fails != "" {
					if !errors.Is(err, tc.fails) {
						t.Errorf("start: %v", err)
					}
					return
				}
				wait(time.Minute)
				stop(t, c)
				switch i := b.Inspect("q"); tc.where {
				case "kept":
					if i.Ready+i.Delayed != 1 {
						t.Errorf("%+v", i)
					}
				case "gone":
					if i.Acked != 1 || c.Stats().Discarded != 1 {
						t.Errorf("%+v", i)
					}
				default:
					if b.Inspect(tc.where).Published != 1 {
						t.Errorf("not in %s", tc.where)
					}
				}
			})
		})
	}
}

// blocking is a source on which a kept message stops others, like a partition.
type blocking struct{ transport.Source }

func (s blocking) Capabilities() transport.Capabilities {
	caps := s.Source.Capabilities()
	caps.HeadOfLineBlocking, caps.Keyed = true, true
	return caps
}

func TestKeepMustBeSaidWhereItBlocks(t *testing.T) {
	b := memory.New(memory.Config{})
	src := blocking{b.Queue("q", memory.QueueConfig{})}
	if _, err := container.New(src, handle(noop), quiet(container.Config{})); err == nil || !strings.Contains(err.Error(), "DeadLetter") {
		t.Errorf("zero: %v", err)
	}
	for _, policy := range []container.Policy{container.DeadLetterKeep, container.DeadLetterDiscard} {
		if _, err := container.New(src, handle(noop), quiet(container.Config{DeadLetter: container.DeadLetter{Policy: policy}})); err != nil {
			t.Errorf("policy %d: %v", policy, err)
		}
	}
}

// F-N21: a dead letter has the identity of the message that died, by which the log has it
// too.
func TestADeadLetterCarriesTheIdentityOfTheLog(t *testing.T) {
	b := memory.New(memory.Config{})
	send(t, b, "q", &longshore.Message{Body: []byte("a")}, &longshore.Message{Body: []byte("b"), Headers: longshore.Headers{{Name: longshore.HeaderID, Value: "own"}}})
	ids := make(chan string, 2)
	c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
		ids <- longshore.Identity(d)
		return errors.New("no")
	}), container.Config{Redelivery: always, Workers: container.Workers{Max: 1}, DeadLetter: container.DeadLetter{To: "dead"}})
	eventually(t, "both are dead", func() bool { return b.Inspect("dead").Ready == 2 })
	stop(t, c)
	ds := browse(t, b, "dead")
	if first := <-ids; first == "" || longshore.Identity(ds[0]) != first {
		t.Errorf("%q, %v", first, ds[0].Received().Headers)
	}
	if longshore.Identity(ds[1]) != "own" {
		t.Errorf("%v", ds[1].Received().Headers)
	}
}

// F-G03: a dead letter waits for people: it neither expires nor goes with a restart of
// the broker, whatever its producer allowed.
func TestDeadLettersLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		for mode := range uint8(3) {
			send(t, b, "q", &longshore.Message{ID: fmt.Sprint(mode), DeliveryMode: mode, Expiration: time.Hour})
		}
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { return errBad }),
			container.Config{Redelivery: always, DeadLetter: container.DeadLetter{To: "dead"}})
		wait(time.Minute)
		stop(t, c)
		modes := map[string]uint8{}
		for _, d := range browse(t, b, "dead") {
			if modes[d.ID] = d.DeliveryMode; d.Expiration != 0 {
				t.Errorf("%s expires after %v", d.ID, d.Expiration)
			}
		}
		if got := fmt.Sprint(modes); got != "map[0:0 1:0 2:2]" {
			t.Errorf("delivery modes %s", got)
		}
	})
}

// hanging is a destination that answers nothing, and first says so at once.
type hanging struct{ refused atomic.Int32 }

func (p *hanging) Publish(ctx context.Context, _ string, _ ...*longshore.Message) error {
	if p.refused.Add(1) == 1 {
		return errors.New("no such place")
	}
	<-ctx.Done()
	return ctx.Err()
}
func (*hanging) Close(context.Context) error { return nil }

// What waits to be moved while another is being moved, to a place that does not answer,
// and is taken back meanwhile, does not wait here any more: its key goes on.
func TestLossOfWhatWaitsToBeMoved(t *testing.T) {
	for name, lose := range map[string]func(b *memory.Broker){
		"taken back": func(b *memory.Broker) { b.TakeBack("q") },
		"cut":        func(b *memory.Broker) { b.Drop("q") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", "a:1", "b:1", "c:1", "d:1")
				var lost atomic.Bool
				c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error {
					if lost.Load() {
						return nil
					}
					return errBad
				}), container.Config{Order: container.ByKey, Workers: container.Workers{Max: 1}, Redelivery: always, DeadLetter: container.DeadLetter{To: "dead", Via: &hanging{}}})
				wait(3 * time.Second)
				if st := c.Stats(); st.Parked != 3 || st.InFlight != 1 {
					t.Fatalf("%d parked, %d in flight", st.Parked, st.InFlight)
				}
				lost.Store(true)
				lose(b)
				wait(time.Second)
				if st := c.Stats(); st.Parked != 0 || b.Inspect("q").Acked != 3 {
					t.Errorf("%d parked, %d done", st.Parked, b.Inspect("q").Acked)
				}
				wait(time.Minute)
				if st := c.Stats(); st.InFlight+st.Parked+st.Lanes != 0 || b.Inspect("q").Acked != 4 {
					t.Errorf("%d in flight, %d parked, %d lanes, %d done", st.InFlight, st.Parked, st.Lanes, b.Inspect("q").Acked)
				}
			})
		})
	}
}
