//go:build !unix

package admin

import "os"

// ownedByUs: directories of the user are closed to others there by default.
func ownedByUs(os.FileInfo) bool { return true }
