package admin

import "time"

// Routes counts the routes.
func Routes(s *Server) int { return len(s.routes()) }

// Subscribe opens a stream that nobody reads.
func Subscribe(s *Server) (ch <-chan frame, stop func()) {
	_, ch, stop = s.feed.hub.subscribe(1<<63 - 1)
	return ch, stop
}

// Flood hands out changes faster than anybody can read them.
func Flood(s *Server, n int) {
	for range n {
		s.feed.hub.status(frame{[]byte(": \n\n"), []byte(": \n\n")})
	}
}

// Tick is what the server does twice a second.
func Tick(s *Server, now time.Time) { s.feed.tick(now) }
