// Package history is what producers, consumers and a nemesis write down while a cluster is
// under fire, and what a checker reads afterwards: one line of JSON for each thing that
// happened, in one file per process. It knows nothing of what is tested.
//
//	h, err := history.Create(folder, "producer-1")
//	h.Add(history.Event{Kind: history.Published, ID: "order-7", Key: "anna", Seq: 7})
//	...
//	events, err := history.Read(folder) // of all processes, by time
//
// A line is written, and has left the process, before what it speaks of goes on: a start
// before the handler's first step, a publish before the message leaves. So the history of a
// process that is killed ends with what it did last.
package history
