package demo

import "time"

// Stream writes one JSON object a line: events as they come, the state once a
// second.
type Stream struct {
	line func(any) error
	next time.Duration
}

// NewStream writes by line. A write error only means that the reader has gone.
func NewStream(line func(any) error) *Stream { return &Stream{line: line} }

type streamBegin struct {
	Type string `json:"type"`
	Header
	Seconds float64 `json:"for_seconds"`
}

type streamEvent struct {
	Type string  `json:"type"`
	At   float64 `json:"at"`
	Kind string  `json:"kind"`
	Text string  `json:"text"`
}

type streamState struct {
	Type    string  `json:"type"`
	At      float64 `json:"at"`
	Brokers []Row   `json:"brokers"`
}

// Begin implements Show.
func (s *Stream) Begin(h Header) {
	_ = s.line(streamBegin{Type: "begin", Header: h, Seconds: h.For.Seconds()})
}

// Event implements Show.
func (s *Stream) Event(e Event) {
	_ = s.line(streamEvent{Type: "event", At: e.At.Seconds(), Kind: e.Kind, Text: e.Text})
}

// Frame implements Show.
func (s *Stream) Frame(at time.Duration, rows []Row) {
	if at < s.next {
		return
	}
	s.next = at.Truncate(time.Second) + time.Second
	_ = s.line(streamState{Type: "state", At: at.Seconds(), Brokers: rows})
}

// End implements Show.
func (s *Stream) End() {}
