package throttle

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// sender publishes in the background, without a waiting caller.
type sender struct {
	outlet transport.Outlet
	kick   chan struct{}

	mu    sync.Mutex
	queue []outgoing
	pub   transport.Publisher
	dest  string
}

type outgoing struct {
	key string
	raw []byte
}

const (
	maxOutgoing = 256
	publishWait = 5 * time.Second
)

// add queues a message; the oldest gives way where too many wait.
func (s *sender) add(key string, raw []byte) {
	s.mu.Lock()
	if len(s.queue) == maxOutgoing {
		s.queue = s.queue[1:]
	}
	s.queue = append(s.queue, outgoing{key, raw})
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// publish sends one message now.
func (s *sender) publish(ctx context.Context, key string, raw []byte) error {
	pub, dest, err := s.publisher(ctx)
	if err != nil {
		return err
	}
	m := &longshore.Message{Key: []byte(key), Body: raw, ContentType: "application/json"}
	if err := pub.Publish(ctx, dest, m); err != nil {
		if !errors.Is(err, context.Canceled) {
			s.close(ctx) // a new connection next time
		}
		return err
	}
	return nil
}

func (s *sender) publisher(ctx context.Context) (transport.Publisher, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pub != nil {
		return s.pub, s.dest, nil
	}
	if s.outlet == nil {
		return nil, "", &longshore.Error{Code: longshore.CodeUnsupported, Op: "publish a control message", Err: errors.New("the source cannot publish")}
	}
	var err error
	s.pub, s.dest, err = s.outlet.Publisher(ctx)
	return s.pub, s.dest, err
}

func (s *sender) close(ctx context.Context) {
	s.mu.Lock()
	pub := s.pub
	s.pub = nil
	s.mu.Unlock()
	if pub != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = pub.Close(ctx) // what it had was already reported
	}
}

// send publishes queued messages.
func (f *Fleet) send(ctx context.Context) {
	for {
		select {
		case <-f.out.kick:
		case <-ctx.Done():
			return
		}
		for {
			f.out.mu.Lock()
			if len(f.out.queue) == 0 {
				f.out.mu.Unlock()
				break
			}
			m := f.out.queue[0]
			f.out.queue = f.out.queue[1:]
			f.out.mu.Unlock()
			one, cancel := context.WithTimeout(ctx, publishWait)
			_ = f.out.publish(one, m.key, m.raw) // said again in a while; Status reports a broker that is away
			cancel()
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// sayHello notifies the others that we live and, with an ID, what we obey.
func (f *Fleet) sayHello(ctx context.Context, joining bool, applied string) {
	if !f.cfg.ListenOnly {
		f.member(ctx, &Member{Joining: joining, Applied: applied}, func(key string, raw []byte) { f.out.add(key, raw) })
	}
}

// goodbye lets the others divide again at once, and takes our word off a topic that
// keeps the last of each key.
func (f *Fleet) goodbye(ctx context.Context) {
	f.linkMu.Lock()
	speak := f.connected && !f.cfg.ListenOnly
	f.connected = false
	f.linkMu.Unlock()
	if speak {
		bound, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		f.member(bound, &Member{Leaving: true}, func(key string, raw []byte) {
			if f.out.publish(bound, key, raw) == nil {
				_ = f.out.publish(bound, key, nil) // who does not hear it forgets us in 35 s
			}
		})
	}
	f.out.close(ctx)
}

// member makes and signs a word about ourselves.
func (f *Fleet) member(ctx context.Context, m *Member, say func(key string, raw []byte)) {
	m.Instance = f.cfg.Instance
	f.mu.Lock()
	for name := range f.limits {
		m.Containers = append(m.Containers, name)
	}
	f.mu.Unlock()
	slices.Sort(m.Containers)
	f.wordMu.Lock()
	defer f.wordMu.Unlock()
	at := f.now()
	if late := f.word.Sub(at); late >= 0 && late < time.Second { // a coarse clock, not one that was set back
		at = f.word.Add(1)
	}
	f.word = at
	d := &Directive{Version: version, Scope: f.cfg.Scope, IssuedAt: at, ID: newID(), Member: m}
	raw, err := f.seal(ctx, d)
	if err != nil {
		f.refused(d, refuse(refusedSignature, "our own word: %v", err))
		return
	}
	say(f.cfg.Scope+"/member/"+m.Instance, raw)
}

// seal signs and writes a control message.
func (f *Fleet) seal(ctx context.Context, d *Directive) ([]byte, error) {
	if err := f.ring.sign(ctx, d); err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

func newID() string { return strings.ToLower(rand.Text()[:16]) }
