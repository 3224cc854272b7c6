package memory

import "slices"

// roster is the consumers of a queue in the order in which they joined. It decides who
// receives the next message. The broker's lock guards it.
type roster struct {
	all       []*consumer // in the order of their opening
	next      int         // whose turn it is, where several receive
	exclusive bool        // the only member allows no other
}

func (r *roster) add(c *consumer) { r.all = append(r.all, c) }

func (r *roster) remove(c *consumer) {
	r.all = slices.DeleteFunc(r.all, func(x *consumer) bool { return x == c })
	r.exclusive = r.exclusive && len(r.all) > 0
}

// moveToEnd makes a consumer the one that joined last.
func (r *roster) moveToEnd(c *consumer) {
	if i := slices.Index(r.all, c); i >= 0 {
		r.all = append(slices.Delete(r.all, i, i+1), c)
	}
}

// active is the consumer that a single-active queue serves: the first that still wants
// messages. Nil if there is none.
func (r *roster) active() *consumer {
	for _, c := range r.all {
		if c.servable() {
			return c
		}
	}
	return nil
}

// inTurn is the next consumer with room; nil if none has any.
func (r *roster) inTurn() *consumer {
	for range r.all {
		if r.next >= len(r.all) {
			r.next = 0
		}
		c := r.all[r.next]
		r.next++
		if c.room() {
			return c
		}
	}
	return nil
}
