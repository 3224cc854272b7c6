// Package history keeps the last 15 minutes of a container, one point a second, in a
// fixed amount of memory.
//
//	var past history.History
//	point, ok := past.Add(time.Now(), &stats)   // once a second
//	series := past.Last(time.Now(), 900)
package history
