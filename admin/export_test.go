package admin

// Routes counts the routes.
func Routes(s *Server) int { return len(s.routes()) }
