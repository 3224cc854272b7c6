package dispatch

// running owns the items that are with a handler, or whose verdict is being carried out.
// They are in no order: each knows its place, so that any of them ends in constant time.
type running[T any] struct {
	items []*Item[T] // all of them
}

func (r *running[T]) add(it *Item[T]) {
	it.pos = len(r.items)
	r.items = append(r.items, it)
}

func (r *running[T]) remove(it *Item[T]) {
	last := len(r.items) - 1
	moved := r.items[last]
	if moved != it {
		r.items[it.pos], moved.pos = moved, it.pos
	}
	r.items = r.items[:last] // the slot keeps its pointer: items are reused, so that it pins nothing
}
