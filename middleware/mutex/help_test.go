package mutex_test

import "strings"

func contains(err error, part string) bool { return strings.Contains(err.Error(), part) }
