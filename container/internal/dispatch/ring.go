package dispatch

// most is how many unused entries a ring, a list or a free list keeps: a burst must not
// pin its peak for ever.
const most = 1024

// ring is a queue of items that grows and shrinks by powers of two.
type ring[T any] struct {
	buf  []*Item[T] // nil outside the n used places
	head int        // the place of the first
	n    int        // how many there are
}

const minRing = 64

func (q *ring[T]) push(it *Item[T]) {
	if q.n == len(q.buf) {
		q.resize(max(minRing, 2*len(q.buf)))
	}
	q.buf[(q.head+q.n)&(len(q.buf)-1)] = it
	q.n++
}

func (q *ring[T]) pop() *Item[T] {
	it := q.take()
	if q.n == 0 && len(q.buf) > most {
		q.buf, q.head = nil, 0
	}
	return it
}

func (q *ring[T]) front() *Item[T] { return q.at(0) }

func (q *ring[T]) at(i int) *Item[T] { return q.buf[(q.head+i)&(len(q.buf)-1)] }

func (q *ring[T]) resize(size int) {
	buf := make([]*Item[T], size)
	for i := range q.n {
		buf[i] = q.at(i)
	}
	q.buf, q.head = buf, 0
}

// filter keeps the items for which keep is true, in order.
func (q *ring[T]) filter(keep func(*Item[T]) bool) {
	for range q.n {
		if it := q.take(); keep(it) {
			q.push(it)
		}
	}
}

// take is pop without giving the buffer back.
func (q *ring[T]) take() *Item[T] {
	it := q.buf[q.head]
	q.buf[q.head] = nil
	q.head = (q.head + 1) & (len(q.buf) - 1)
	q.n--
	return it
}
