package problem

import "errors"

// List collects mistakes in one thing. The zero value is empty.
type List struct {
	// Op and Source are those of each error: what was checked, and the queue, topic or
	// container it belongs to.
	Op, Source string

	errs []error
}

// Add notes problems.
func (l *List) Add(ps ...*Problem) {
	for _, p := range ps {
		l.errs = append(l.errs, p.Of(l.Op, l.Source))
	}
}

// Range notes a value outside its bounds; see the function of that name.
func (l *List) Range(field string, value any, must string, args ...any) {
	l.Add(Range(field, value, must, args...))
}

// Required notes a missing value.
func (l *List) Required(field, hint string) { l.Add(Required(field, hint)) }

// Conflict notes two settings that do not work together.
func (l *List) Conflict(field string, value any, other, why, hint string) {
	l.Add(Conflict(field, value, other, why, hint))
}

// Bad notes any other mistake.
func (l *List) Bad(field, hint, what string, args ...any) { l.Add(Bad(field, hint, what, args...)) }

// Join notes errors of something that is part of this one; nil is none.
func (l *List) Join(errs ...error) {
	for _, err := range errs {
		if err != nil {
			l.errs = append(l.errs, err)
		}
	}
}

// Below notes what a part of this one found: its problems become those of the part's field,
// and any other error is the reason why the field is bad.
func (l *List) Below(field string, err error) {
	for _, e := range Split(err) {
		var p *Problem
		if errors.As(e, &p) {
			l.Add(p.Under(field))
		} else {
			l.Add(Bad(field, "", "cannot be used").Because(e))
		}
	}
}

// Len is how many errors were noted.
func (l *List) Len() int { return len(l.errs) }

// Err joins them; nil if there are none.
func (l *List) Err() error { return errors.Join(l.errs...) }

// Split takes joined errors apart.
func Split(err error) []error {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range many.Unwrap() {
		all = append(all, Split(e)...)
	}
	return all
}
