// Package problem describes mistakes in a configuration as values. A constructor that
// checks its settings collects a [Problem] for each mistake in a [List]; the list turns
// them into errors of the module, and all of them are reported at once.
//
//	var l problem.List
//	if c.Min > c.Max {
//		l.Add(problem.Range("Workers.Min", c.Min, "at most Workers.Max, which is %d", c.Max))
//	}
//
// A problem names its setting as a Go path ("Redelivery.Backoff.Max"). Package config
// reads that path to find the line in the file, and writes the problem again with the
// names that the file has. So no code has to search the text of an error.
//
// Texts are templates. {Workers.Max} is the name of a setting or of one of its values;
// {?…} is said only to users of the Go API: "0 to 1{?, or -1 for none}". Values are
// arguments, never part of the template.
package problem
