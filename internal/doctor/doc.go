// Package doctor looks at mutex rows, a dead-letter queue and a queue, and says what
// they mean together.
//
//	findings, err := doctor.Examine(ctx, doctor.Case{Rows: once.Rows, Dead: dead, Queue: orders, Limit: 1000})
//
// It only looks, and only where looking does no harm: a place that refuses to be
// browsed is unknown, and unknowns are not guessed.
package doctor
