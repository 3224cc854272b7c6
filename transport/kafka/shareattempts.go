package kafka

import (
	"sync"

	"github.com/longshore-go/longshore/transport/kafka/internal/share"
)

// shareAttempts finds out which attempt a delivery is. Kafka counts deliveries, and a delivery
// is not a failed run: a stop returns what it did not start. What became of a delivery in this
// process is known; one elsewhere does not count as a failure, since a record comes to its end
// by Kafka's own limit, which is low.
//
// It is shared by all consumers of a source, and safe for concurrent use.
type shareAttempts struct {
	mu    sync.Mutex         // guards the others
	known map[sharePlace]int // the attempt that the next delivery carries
	order []sharePlace       // by age, so that the oldest are forgotten; may hold places that are gone
}

// sharePlace is where a record is.
type sharePlace struct {
	part   share.Part // of the log
	offset int64      // in it
}

func placeOf(r *share.Record) sharePlace { return sharePlace{r.Part, r.Offset} }

// maxShareHistories bounds the memory.
const maxShareHistories = 20_000

func newShareAttempts() *shareAttempts { return &shareAttempts{known: map[sharePlace]int{}} }

// of is the attempt of a delivery.
func (a *shareAttempts) of(r *share.Record) int {
	if r.Deliveries <= 1 {
		return 1
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.known[placeOf(r)], 1)
}

// next notes which attempt the next delivery is.
func (a *shareAttempts) next(r *share.Record, attempt int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := placeOf(r)
	if _, known := a.known[at]; !known {
		if len(a.order) >= maxShareHistories {
			delete(a.known, a.order[0])
			a.order = a.order[1:]
		}
		a.order = append(a.order, at)
	}
	a.known[at] = attempt
}

// forget drops a record that is done.
func (a *shareAttempts) forget(r *share.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, placeOf(r)) // its place in order goes with time
}
