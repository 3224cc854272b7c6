// Package edit makes hints about what was not written as it should be.
//
//	edit.Distance("qeue", "queue") // 1
//	edit.Nearest("qeue", []string{"queue", "topic"}) // queue
//	edit.TimeHint("30")            // it needs a unit: 30ms, 30s, 30m or 30h
package edit
