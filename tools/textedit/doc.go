// Package textedit puts known faults into a copy of the tree: one edit of a file's text each,
// which must fit exactly once. The tools sabotage and planted share it.
//
//	err := textedit.CopyTree(ctx, root, tree, true)
//	undo, err := textedit.Edit{Name: "ack-lost", File: "transport/amqp/settle.go", Old: old, New: wrong}.Put(tree)
//	defer undo()
package textedit
