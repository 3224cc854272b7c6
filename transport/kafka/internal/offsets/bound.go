package offsets

import "sort"

// Only the metadata of a commit remembers the records done above the committed offset. So no
// more is handed out than that text can describe, in whatever order it is done: otherwise
// an orderly stop would repeat what did not fit.
//
// The bound depends on two numbers: how many records are open (handed out and not done),
// and the span of offsets from the watermark to the last one handed out. Neither grows when
// a record is done, so what fits once fits until more is handed out.

// headBytes is the most that the text takes apart from its body: checksum, kind, mark,
// base, epoch, and the count of attempts.
const headBytes = 4 + 1 + 8 + 10 + 5 + 1

// roomFor is how many bytes a text of budget characters has for its body.
func roomFor(budget int) int { return (budget-len(prefix))*3/4 - headBytes }

// canDescribe reports whether room bytes can describe every state that open records within
// a span of offsets can come to.
func canDescribe(open int, span int64, room int) bool {
	if span <= int64(room)*8 { // one bit for each
		return true
	}
	bits, _ := undoneBits(open, span)
	return bits <= int64(room-undoneHead)*8
}

// handOut is how many more records with consecutive offsets may be handed out, at most
// most.
func handOut(open int, span int64, room, most int) int {
	if canDescribe(open+most, span+int64(most), room) { // nearly always
		return most
	}
	return sort.Search(most, func(n int) bool { return !canDescribe(open+n+1, span+int64(n)+1, room) })
}

// CanTake is how many more records may be handed out from offset next on, at most most, so
// that budget characters of metadata can always describe the result. A budget of 0 means
// that the broker keeps no metadata: then there is no bound.
func (t *Tracker) CanTake(next int64, budget, most int) int {
	if t.base < 0 || budget == 0 || most <= 0 || next < t.saved.end() { // the owner before has remembered as much
		return most
	}
	return handOut(t.Unfinished(), next-t.base, roomFor(budget), most)
}

// CanTakeUpTo reports whether n more records may be handed out of which the last has the
// offset last: their offsets may have gaps, which CanTake knows nothing of.
func (t *Tracker) CanTakeUpTo(last int64, n, budget int) bool {
	return budget == 0 || last < t.saved.end() || canDescribe(t.Unfinished()+n, last+1-t.base, roomFor(budget))
}
