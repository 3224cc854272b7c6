package lifecycle

import "time"

// share is how long the first of several phases may take of the time left. A budget is
// the longest that a phase can take, seldom what it needs. With time for all budgets the
// first phase gets everything beyond those of the later ones. With less, all get a part
// in proportion. The question is put again before each phase, so what one does not use
// goes to the next.
func share(left, own time.Duration, later []time.Duration) time.Duration {
	var kept time.Duration
	for _, d := range later {
		kept += d
	}
	switch {
	case left <= 0:
		return 0
	case own+kept <= left || own+kept == 0:
		return left - kept
	}
	return time.Duration(float64(left) * float64(own) / float64(own+kept))
}
