package mutex

import (
	"errors"
	"reflect"
)

// The drivers are not imported: who uses one database does not want the clients of
// the others. Their errors show the code by a method, or only by a field.

func sqlState(err error) (string, bool) {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState(), true
	}
	return "", false
}

// codeNumber is of drivers with a method, and of mattn's with a field.
func codeNumber(err error) (int64, bool) {
	var e interface{ Code() int }
	if errors.As(err, &e) {
		return int64(e.Code()), true
	}
	return fieldNumber(err, "ExtendedCode")
}

// fieldNumber looks through the tree of err for a struct with the field.
func fieldNumber(err error, name string) (int64, bool) {
	if err == nil {
		return 0, false
	}
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		if n, ok := number(v.FieldByName(name)); ok {
			return n, true
		}
	}
	switch e := err.(type) { //nolint:errorlint // this is the walk
	case interface{ Unwrap() error }:
		return fieldNumber(e.Unwrap(), name)
	case interface{ Unwrap() []error }:
		for _, sub := range e.Unwrap() {
			if n, ok := fieldNumber(sub, name); ok {
				return n, true
			}
		}
	}
	return 0, false
}

func number(f reflect.Value) (int64, bool) {
	switch {
	case !f.IsValid():
		return 0, false
	case f.CanInt():
		return f.Int(), true
	case f.CanUint():
		return int64(f.Uint()), true //nolint:gosec // error numbers are small
	}
	return 0, false
}
