package demo

import "time"

// Show hears of everything that is to be seen. Its methods are called one at a
// time.
type Show interface {
	Begin(Header)
	// Event is a step or something that happened.
	Event(Event)
	// Frame is the state of all brokers, several times a second.
	Frame(at time.Duration, rows []Row)
	// End comes after the last frame.
	End()
}

// Header says what runs.
type Header struct {
	Brokers []string      `json:"runs_on"`
	Keys    int           `json:"keys"`
	Seed    uint64        `json:"seed"`
	For     time.Duration `json:"-"`
	// Page is the address of the live console; it logs in once. Stay: until it is interrupted.
	Page string `json:"page"`
	Stay bool   `json:"stay,omitempty"`
}

// Event is one line.
type Event struct {
	At   time.Duration // since the start
	Kind string        // one word
	Text string
}

// Row is the state of one broker.
type Row struct {
	Broker  string `json:"broker"`
	Rate    int    `json:"rate"` // handled in the last second
	Backlog int    `json:"backlog"`
	Running int    `json:"running"`
	Workers int    `json:"workers"`
	Max     int    `json:"workers_max"`
	History []int  `json:"-"` // of Workers
	Retried int    `json:"retried"`
	Dead    int    `json:"dead"`
	State   string `json:"state"`
	Trouble bool   `json:"-"` // recovering
}

// silent is a Show without an audience.
type silent struct{}

func (silent) Begin(Header)               {}
func (silent) Event(Event)                {}
func (silent) Frame(time.Duration, []Row) {}
func (silent) End()                       {}
