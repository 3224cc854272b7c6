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
	mu    sync.Mutex                  // guards what follows
	known map[sharePlace]shareHistory // of records that failed
	order []shareEntry                // by age, so that the oldest are forgotten; may hold entries that are gone
	made  uint64                      // entries so far
}

// shareHistory is what is known of a record.
type shareHistory struct {
	attempt int    // that the next delivery carries
	entry   uint64 // its place in order: one that was forgotten and failed again has another
}

// shareEntry is a record in the order of age.
type shareEntry struct {
	at sharePlace // which record
	n  uint64     // counts entries
}

// sharePlace is where a record is.
type sharePlace struct {
	part   share.Part // of the log
	offset int64      // in it
}

func placeOf(r *share.Record) sharePlace { return sharePlace{r.Part, r.Offset} }

// maxShareHistories bounds the memory.
const maxShareHistories = 20_000

func newShareAttempts() *shareAttempts { return &shareAttempts{known: map[sharePlace]shareHistory{}} }

// of is the attempt of a delivery.
func (a *shareAttempts) of(r *share.Record) int {
	if r.Deliveries <= 1 {
		return 1
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.known[placeOf(r)].attempt, 1)
}

// next notes which attempt the next delivery is.
func (a *shareAttempts) next(r *share.Record, attempt int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := placeOf(r)
	h, known := a.known[at]
	if !known {
		if len(a.order) >= maxShareHistories {
			if oldest := a.order[0]; a.known[oldest.at].entry == oldest.n {
				delete(a.known, oldest.at)
			}
			a.order = a.order[1:]
		}
		a.made++
		h.entry = a.made
		a.order = append(a.order, shareEntry{at, a.made})
	}
	h.attempt = attempt
	a.known[at] = h
}

// forget drops a record that is done.
func (a *shareAttempts) forget(r *share.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, placeOf(r)) // its place in order goes with time
}
