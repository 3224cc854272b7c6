package amqptest

// Restart is what a client sees of a broker that is restarted: connections are
// cut, exclusive and transient queues and exchanges are gone, transient messages
// too (a quorum queue keeps all of its messages). The port stays as it is; see
// [Server.Refuse] for a time in between.
func (s *Server) Restart() {
	s.begin()
	defer s.end()
	for c := range s.conns {
		c.cut()
	}
	for _, vh := range s.vhosts {
		for _, q := range vh.queues {
			if !q.durable {
				q.delete()
				continue
			}
			q.forgetTransient()
		}
		for _, x := range vh.exchanges {
			if !x.durable {
				x.delete()
			}
		}
	}
}

func (q *queue) forgetTransient() {
	if q.quorum {
		return
	}
	q.lists(func(l *entryList) bool {
		all := *l
		*l = entryList{}
		for e := all.front; e != nil; {
			next := e.next
			if e.msg.persistent {
				e.redelivered = true
				l.pushBack(e)
			} else {
				q.taken(e)
			}
			e = next
		}
		return true
	})
}

// Reset makes the server as new: connections are cut, queues, exchanges and the
// method log are gone, every fault is switched off. Address, users and clock stay.
func (s *Server) Reset() error {
	s.begin()
	for c := range s.conns {
		c.cut()
	}
	for name, vh := range s.vhosts {
		for _, q := range vh.queues {
			q.delete()
		}
		s.vhosts[name] = newVHost(s, name)
	}
	refusing := s.controls.refusing
	s.controls = controls{refusing: refusing, consumerTimeout: s.cfg.ConsumerTimeout}
	s.log = methodLog{}
	s.end()
	return s.Accept()
}
