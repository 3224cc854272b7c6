package config

import (
	"reflect"

	"go.yaml.in/yaml/v4"
)

// document is the text of a file with the place of everything in it. It knows what must
// not be shown, and reports nothing itself.
type document struct {
	name     string                // of the file, for people
	lines    [][]rune              // of the text; none before it was parsed
	hidden   map[int][]span        // what excerpts must not show, by line
	at       map[string]pair       // key and value by path
	env      map[*yaml.Node]string // the variable that a node comes from
	defaults map[*yaml.Node]bool   // nodes below defaults, which origins name
}

// reporter collects mistakes in a document.
type reporter struct {
	*document
	problems []Problem       // as they were found
	spots    []spot          // the place of each, for its excerpt
	more     int             // problems beyond maxProblems, which are only counted
	broken   map[string]bool // paths with a problem: what follows from it is not reported
	// fields are those of the types of sections: their tags are read once, not for each container.
	fields map[reflect.Type][]field
}

// fieldsOf is fieldsOf of the package, remembered.
func (rp *reporter) fieldsOf(t reflect.Type) []field {
	fs, known := rp.fields[t]
	if !known {
		fs = fieldsOf(t)
		rp.fields[t] = fs
	}
	return fs
}
