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
