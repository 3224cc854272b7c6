package transport

import "time"

// Remaining is what has not passed through a source yet: a move is finished when all of it is 0
// and stays 0 for longer than Lag.
type Remaining struct {
	Ready     int64 // ready to be delivered; on a log what the group has not done
	Unsettled int64 // delivered and not settled, by any consumer
	Delayed   int64 // to be ready later: retries that wait, messages sent with a delay
	Consumers int64 // that could receive them; -1 = the broker does not report them

	// Exact says that the counts are complete and no estimates, apart from Lag.
	Exact bool
	// Uncounted says what the counts leave out, and how to have it counted. "" = nothing.
	Uncounted string
	// Lag is how old the counts may be.
	Lag time.Duration
	// Of has the counts of each place, in a stable order: the queues or topics of the source,
	// then the queues in which its messages wait.
	Of []Place
}

// Place is one queue or topic with its counts.
type Place struct {
	Name string // of the queue or topic
	// Ready, Unsettled, Delayed and Consumers are as in [Remaining].
	Ready, Unsettled, Delayed, Consumers int64
}

// Add counts a place too.
func (r *Remaining) Add(p Place) {
	r.Ready, r.Unsettled, r.Delayed = r.Ready+p.Ready, r.Unsettled+p.Unsettled, r.Delayed+p.Delayed
	if p.Consumers < 0 || r.Consumers < 0 {
		r.Consumers = -1
	} else {
		r.Consumers += p.Consumers
	}
	r.Of = append(r.Of, p)
}

// Messages is how many messages remain.
func (r *Remaining) Messages() int64 { return r.Ready + r.Unsettled + r.Delayed }
