package dispatch

// Sum counts items and the bytes that they keep alive.
type Sum struct {
	N     int
	Bytes int64
}

func (s *Sum) add(size int64) { s.N, s.Bytes = s.N+1, s.Bytes+size }

func (s *Sum) sub(size int64) { s.N, s.Bytes = s.N-1, s.Bytes-size }

// plus is both together.
func (s Sum) plus(o Sum) Sum { return Sum{s.N + o.N, s.Bytes + o.Bytes} }

// minus is what remains without the other.
func (s Sum) minus(o Sum) Sum { return Sum{s.N - o.N, s.Bytes - o.Bytes} }
