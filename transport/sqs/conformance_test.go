package sqs_test

import (
	"flag"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// The suite on standard and FIFO queues, with a redrive policy (Reject leads to its
// queue, returns count) and without.
func TestConformance(t *testing.T) {
	var one room
	ofEachKind(t, func(t *testing.T, suffix string, redrive bool) {
		l := &lab{suffix: suffix, redrive: redrive, servers: map[transport.Source]*sqstest.Server{}}
		transporttest.Run(t, one.entered(l.harness()))
	})
}

// ofEachKind runs f for each kind of queue, all side by side. What f does before it
// returns is over for all of them before the parallel checks of any begin.
func ofEachKind(t *testing.T, f func(t *testing.T, suffix string, redrive bool)) {
	var serial sync.WaitGroup
	for _, suffix := range []string{"", ".fifo"} {
		for _, redrive := range []bool{false, true} {
			t.Run(fmt.Sprintf("queue%s/redrive=%t", suffix, redrive), func(t *testing.T) {
				serial.Add(1) // of those that were asked for
				t.Parallel()
				func() {
					defer serial.Done()
					f(t, suffix, redrive)
				}()
				if n, ok := flag.Lookup("test.parallel").Value.(flag.Getter).Get().(int); ok && n >= 4 {
					serial.Wait() // only to save time: room keeps them apart
				}
			})
		}
	}
}

// room lets the checks of all kinds of queues run side by side, and the one that
// counts the goroutines of the process by itself.
type room struct {
	in    sync.RWMutex
	names sync.Map // who has entered
}

// enter is called by every check before it begins anything.
func (r *room) enter(t testing.TB) {
	if _, ok := r.names.LoadOrStore(t.Name(), true); ok {
		return
	}
	if strings.HasSuffix(t.Name(), "/goroutines") {
		r.in.Lock()
		t.Cleanup(r.in.Unlock)
		return
	}
	r.in.RLock()
	t.Cleanup(r.in.RUnlock)
}

// entered makes the sources of a harness wait for their turn.
func (r *room) entered(h transporttest.Harness) transporttest.Harness {
	h.Patience, h.Parallel = 20*time.Second, true
	for _, f := range []*func(testing.TB) transport.Source{&h.Source, &h.Batched, &h.Missing, &h.BadAuth} {
		if source := *f; source != nil {
			*f = func(t testing.TB) transport.Source { r.enter(t); return source(t) }
		}
	}
	leased := h.Leased
	h.Leased = func(t testing.TB) (transport.Source, time.Duration) { r.enter(t); return leased(t) }
	return h
}

// lab makes servers for the suite and remembers which source is on which.
type lab struct {
	suffix  string
	redrive bool

	mu      sync.Mutex
	servers map[transport.Source]*sqstest.Server
}

func nameOf(src transport.Source) string { return src.(transport.Describer).Describe().Name } //nolint:errcheck // it is one

func deadOf(name, suffix string) string { return name[:len(name)-len(suffix)] + "-dead" + suffix }

func (l *lab) server(src transport.Source) *sqstest.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.servers[src]
}

func (l *lab) source(t testing.TB, cfg sqs.QueueConfig) transport.Source {
	t.Helper()
	s := sqstest.New(t)
	name := transporttest.Name(t) + l.suffix
	dead := deadOf(name, l.suffix)
	attrs := map[string]string{}
	if l.redrive {
		s.CreateQueue(t, dead, nil)
		maps.Copy(attrs, map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + s.ARN(dead) + `","maxReceiveCount":100}`})
	}
	s.CreateQueue(t, name, attrs)
	cfg.BrowseCounts = true
	src := sqs.New(s.Config()).Queue(name, cfg)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers[src] = s
	return src
}

// takeBack makes another consumer receive what is in flight, for a second.
func takeBack(t testing.TB, s *sqstest.Server, queue string) {
	t.Helper()
	c := awssqs.New(awssqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.URL), Credentials: remoteConfig("").Credentials, HTTPClient: s.HTTPClient()})
	hidden := state(t, s, queue).Hidden
	s.Expire(queue)
	for hidden > 0 {
		out, err := c.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: aws.String(s.URL + "/0/" + queue), MaxNumberOfMessages: 10, VisibilityTimeout: 1})
		must(t, err)
		hidden -= len(out.Messages)
	}
}

func sqsOperations() []longshore.OperationKind {
	return []longshore.OperationKind{longshore.OperationReceive, longshore.OperationAck, longshore.OperationNack}
}

func (l *lab) harness() transporttest.Harness {
	h := transporttest.Harness{
		Operations: sqsOperations(),
		Source: func(t testing.TB) transport.Source {
			return l.source(t, sqs.QueueConfig{VisibilityTimeout: 6 * time.Second})
		},
		Batched: func(t testing.TB) transport.Source {
			return l.source(t, sqs.QueueConfig{SettleLinger: time.Hour, VisibilityTimeout: time.Hour})
		},
		Leased: func(t testing.TB) (transport.Source, time.Duration) {
			return l.source(t, sqs.QueueConfig{VisibilityTimeout: 3 * time.Second}), 3 * time.Second
		},
		Missing: func(t testing.TB) transport.Source {
			return sqs.New(sqstest.New(t).Config()).Queue("missing"+l.suffix, sqs.QueueConfig{})
		},
		BadAuth: func(t testing.TB) transport.Source {
			return sqs.New(sqstest.New(t, sqstest.Config{AccessKeys: []string{"other"}}).Config()).Queue("any"+l.suffix, sqs.QueueConfig{})
		},
		TakeBack:  func(t testing.TB, src transport.Source) { takeBack(t, l.server(src), nameOf(src)) },
		Duplicate: func(_ testing.TB, src transport.Source) { l.server(src).Expire(nameOf(src)) },
		Latency: func(_ testing.TB, src transport.Source, d time.Duration) {
			if d > 0 {
				l.server(src).Inject(sqstest.Fault{Latency: d})
			}
		},
		Stall: func(_ testing.TB, src transport.Source) func() {
			hold := make(chan struct{})
			remove := l.server(src).Inject(sqstest.Fault{Hold: hold})
			return func() { remove(); close(hold) }
		},
		FailSettle: func(_ testing.TB, src transport.Source) {
			l.server(src).Inject(sqstest.Fault{Action: "DeleteMessageBatch", Times: 1, Entry: func(sqstest.Entry) string { return "AccessDenied" }})
		},
		FailPublish: func(_ testing.TB, src transport.Source) {
			l.server(src).Inject(sqstest.Fault{Action: "SendMessageBatch", Times: 1, Entry: func(sqstest.Entry) string { return "AccessDenied" }})
		},
		Depth: func(_ testing.TB, src transport.Source) (int, int) {
			st, _ := l.server(src).Queue(nameOf(src))
			return st.Visible, st.Hidden
		},
	}
	if l.suffix == "" {
		h.Hidden = 7 * time.Second // a little more than the lease
	}
	if l.redrive {
		h.DeadLettered = func(_ testing.TB, src transport.Source) int {
			st, _ := l.server(src).Queue(deadOf(nameOf(src), l.suffix))
			return st.Visible
		}
	}
	return h
}
