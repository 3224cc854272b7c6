package scalesim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

const (
	tick      = 0.5 // seconds between samples
	minLook   = 8   // as the container
	readEvery = 5.0 // seconds between readings of the backlog
)

// load is a scenario's world; zero fields are the simplest one.
type load struct {
	min, max int
	length   float64 // seconds of the simulation
	warm     float64 // waits of messages that came before are not counted
	burst    int     // messages that come at burstAt
	burstAt  float64
	// rate of arrivals per second at a time; nil: none. top bounds it.
	rate func(t float64) float64
	top  float64
	// even arrivals instead of random ones
	even bool

	work   float64                        // median of a call, in seconds
	spread float64                        // sigma of its logarithm; 0: 0.3; < 0: none
	speed  func(t float64, n int) float64 // of each of n calls; nil: 1
	slots  func(t float64) int            // calls that the downstream lets in at once; nil: all
	breaks []float64                      // times at which speed, slots or permits change

	pull    bool // receives of 10 with a round trip, else the broker pushes
	trip    float64
	backlog float64             // age of the readings of the backlog; < 0: unknown
	permits func(t float64) int // nil: none
	window  int                 // the broker's; 0: follows
	keys    int                 // lanes; 0: unordered
	batch   func(t float64) int
	fails   func(t float64, n int) float64 // share of failing calls
	paused  func(t float64) bool
	ended   float64 // when the load ends; 0: when the queue runs empty
}

type message struct {
	at  float64 // arrival
	key int
}

type worker struct {
	active int     // run of active cycles
	since  float64 // idle since then
	failed bool    // its last call
}

type call struct {
	began float64
	work  float64
	n     int // messages
	key   int
	w     int
}

// world is one run.
type world struct {
	load
	rng    *rand.Rand
	now    float64
	events heap
	policy autoscale.Scaler
	cycles *autoscale.Cycles
	spring bool // count cycles as Spring does, and hand work out in turn

	queue   *fifo    // at the broker
	fleet   []*world // all that share broker and downstream; nil: it is alone
	turn    int      // of the fleet's first: who is served next
	ready   fifo
	lanes   map[int]*fifo // waiting behind a running one of their key
	running map[int]bool  // keys
	behind  int           // messages in lanes

	workers []worker
	idle    []int
	free    []int // retired places
	live    int
	target  int
	calls   []call
	spare   []int
	inside  vheap // calls in the downstream, by v
	outside []int // calls that wait for it
	v, vAt  float64

	polls, asked, wanted int

	busy, accAt, acc         float64 // integral of running calls
	completed, execs, failed int
	log, log2                float64
	hits, seen               int
	read                     int
	readAt                   float64
	activeTripped            int
	result                   *result
}

func newWorld(l load, p autoscale.Policy, seed uint64) *world {
	w := &world{load: l, queue: &fifo{}, rng: rand.New(rand.NewPCG(seed, 99)), policy: p.New(), lanes: map[int]*fifo{}, running: map[int]bool{},
		wanted: 1, readAt: math.Inf(-1), result: newResult(l)}
	if c, ok := p.(autoscale.Cycler); ok {
		cy := c.Cycles()
		w.cycles = &cy
	}
	_, w.spring = p.(spring)
	return w
}

const (
	evArrive = iota
	evTick
	evPolled
	evBreak
	evBurst
)

// run simulates the scenario and returns what came of it.
func (w *world) run() *result {
	if w.burst > 0 {
		w.events.push(event{w.burstAt, evBurst, 0})
	}
	w.setTarget(w.min)
	w.events.push(event{tick, evTick, 0})
	if w.rate != nil {
		w.arriveAfter(0)
	}
	for _, b := range w.breaks {
		w.events.push(event{b, evBreak, 0})
	}
	w.pump()
	for {
		e := w.events.min()
		if end := w.nextEnd(); end <= e.t {
			w.advance(end)
			if w.now > w.length {
				break
			}
			w.end()
			continue
		}
		if e.t > w.length {
			break
		}
		w.events.pop()
		w.advance(e.t)
		w.on(e)
	}
	w.result.end()
	return w.result
}

func (w *world) on(e event) {
	switch e.kind {
	case evArrive:
		w.queue.push(message{w.now, w.key()})
		w.arriveAfter(w.now)
	case evBurst:
		for range w.burst {
			w.queue.push(message{w.now, w.key()})
		}
	case evPolled:
		w.polled(e.n)
	case evBreak:
		w.enter()
	case evTick:
		w.tick()
		w.events.push(event{w.now + tick, evTick, 0})
	}
	w.pump()
}

func (w *world) key() int {
	if w.keys == 0 {
		return -1
	}
	return w.rng.IntN(w.keys)
}

// arriveAfter plans the next arrival, by thinning.
func (w *world) arriveAfter(t float64) {
	for t < w.length {
		if w.even {
			t += 1 / w.top
		} else {
			t += w.rng.ExpFloat64() / w.top
		}
		if w.rng.Float64()*w.top < w.rate(t) {
			w.events.push(event{t, evArrive, 0})
			return
		}
	}
}

// advance lets time pass: virtual time of the calls, and the integral of them.
func (w *world) advance(t float64) {
	w.acc += (t - w.accAt) * w.busy
	w.accAt = t
	w.v += (t - w.vAt) * w.pace()
	w.vAt, w.now = t, t
}

// pace is how fast each call inside goes on.
func (w *world) pace() float64 {
	if w.speed == nil {
		return 1
	}
	return w.speed(w.now, len(w.inside))
}

func (w *world) nextEnd() float64 {
	if len(w.inside) == 0 {
		return math.Inf(1)
	}
	p := w.pace()
	if p <= 0 {
		return math.Inf(1)
	}
	return w.vAt + max(w.inside[0].v-w.v, 0)/p
}

// look is how many messages are held beyond the workers: more where receives are
// slow.
func (w *world) look() int {
	n := w.target
	if w.pull {
		n += int(float64(n) * min(2*w.trip/w.work, 1))
	}
	return max(n, minLook) * w.batchSize()
}

func (w *world) batchSize() int {
	if w.batch == nil {
		return 1
	}
	return w.batch(w.now)
}

func (w *world) held() int { return w.ready.len() + w.behind + int(w.busy)*w.batchSize() }

func (w *world) room() int {
	win := w.target*w.batchSize() + w.look()
	if w.window > 0 {
		win = min(win, w.window)
	}
	if p := w.permit(); p >= 0 {
		win = min(win, p+min(p, minLook))
	}
	return win - w.held()
}

func (w *world) permit() int {
	if w.permits == nil {
		return -1
	}
	return w.permits(w.now)
}

// pump brings in what there is room for and starts what can start.
func (w *world) pump() {
	if w.fleet != nil {
		w.deal()
		return
	}
	for {
		before := w.ready.len() + w.behind
		if w.pull {
			w.poll()
		} else {
			for n := w.room(); n > 0 && w.queue.len() > 0; n-- {
				w.accept(w.queue.pop())
			}
		}
		started := w.startAll()
		if !started && w.ready.len()+w.behind == before {
			return
		}
	}
}

func (w *world) accept(m message) {
	if m.key >= 0 {
		if w.running[m.key] {
			l := w.lanes[m.key]
			if l == nil {
				l = &fifo{}
				w.lanes[m.key] = l
			}
			l.push(m)
			w.behind++
			return
		}
		w.running[m.key] = true // in the ready ring or running
	}
	w.ready.push(m)
}

// poll keeps receives open as the SQS transport does.
func (w *world) poll() {
	for w.polls < w.wanted && w.queue.len() > 0 {
		room := min(w.room()-w.asked, 10)
		if room <= 0 || w.polls > 0 && room < 10 {
			return
		}
		if len(w.idle) == 0 && 2*w.room() < w.target+w.look() {
			return
		}
		w.polls++
		w.asked += room
		w.events.push(event{w.now + w.trip, evPolled, room})
	}
}

func (w *world) polled(room int) {
	w.polls--
	w.asked -= room
	n := min(room, w.queue.len())
	for range n {
		w.accept(w.queue.pop())
	}
	switch n {
	case room:
		w.wanted = min(w.wanted*2, 10)
	case 0:
		w.wanted = 1
	}
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
