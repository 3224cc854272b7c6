//go:build !race

package admin_test

const raceFactor = 1
