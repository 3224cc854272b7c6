package scalesim

import "math"

type event struct {
	t    float64
	kind int
	n    int
}

// heap is a binary heap by time.
type heap []event

func (h heap) min() event {
	if len(h) == 0 {
		return event{t: math.Inf(1)}
	}
	return h[0]
}

func (h *heap) push(e event) {
	s := append(*h, e)
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].t <= s[i].t {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
	*h = s
}

func (h *heap) pop() event {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && s[c+1].t < s[c].t {
			c++
		}
		if s[i].t <= s[c].t {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	*h = s
	return top
}

// vend is the end of a call in virtual time.
type vend struct {
	v  float64
	at int
}

type vheap []vend

func (h *vheap) push(e vend) {
	s := append(*h, e)
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].v <= s[i].v {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
	*h = s
}

func (h *vheap) pop() vend {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && s[c+1].v < s[c].v {
			c++
		}
		if s[i].v <= s[c].v {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	*h = s
	return top
}

// fifo is a queue of messages.
type fifo struct {
	list []message
	head int
}

func (q *fifo) len() int { return len(q.list) - q.head }

func (q *fifo) push(m message) { q.list = append(q.list, m) }

func (q *fifo) pop() message {
	m := q.list[q.head]
	q.head++
	if q.head > 1024 && 2*q.head > len(q.list) {
		q.list = append(q.list[:0], q.list[q.head:]...)
		q.head = 0
	}
	return m
}
