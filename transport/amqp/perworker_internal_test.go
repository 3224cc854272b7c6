package amqp

import "testing"

// Consumers are added and cancelled one by one: the idlest first, of equals the newest, and
// the one that leads last.
func TestNextChangeOfConsumers(t *testing.T) {
	for name, like := range map[string]struct {
		wanted    int
		unsettled []int
		want      change
	}{
		"the first":          {3, nil, change{add: true, cancel: -1}},
		"one more":           {3, []int{0, 1}, change{add: true, cancel: -1}},
		"enough":             {3, []int{0, 1, 0}, change{cancel: -1}},
		"the idle one":       {2, []int{1, 0, 1, 1}, change{cancel: 1}},
		"the least busy":     {1, []int{9, 7, 3, 5}, change{cancel: 2}},
		"the newest of many": {1, []int{0, 0, 0}, change{cancel: 2}},
		"not the lead":       {1, []int{0, 4}, change{cancel: 1}},
		"none at all":        {0, []int{2}, change{cancel: 0}},
	} {
		if got := nextChange(like.wanted, like.unsettled); got != like.want {
			t.Errorf("%s: %+v, want %+v", name, got, like.want)
		}
	}
}

// A resize that failed for some consumers goes to all of them the next time, also when it is
// the earlier one again: those that followed the failed one are shut.
func TestFailedResizeGoesToAllAgain(t *testing.T) {
	c := crew{live: []*crewMember{{}, {}}}
	if n := len(c.follow(false)); n != 0 {
		t.Errorf("%d consumers learn what they know", n)
	}
	if n := len(c.follow(true)); n != 2 {
		t.Errorf("%d of 2 consumers learn that the intake is shut", n)
	}
	c.uneven = true // one of them failed
	if n := len(c.follow(false)); n != 2 || c.shut {
		t.Errorf("%d of 2 consumers learn that the intake is open again after a failure", n)
	}
	if n := len(c.follow(false)); n != 0 {
		t.Errorf("%d consumers learn it twice", n)
	}
}
