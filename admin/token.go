package admin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/longshore-go/longshore"
)

// TokenFile is where the token lies that a server at addr made for the operators
// of this host: a file of mode 0600 in the user's runtime directory, else in a directory
// of the user's below that for temporary files, else in the user's cache. A directory that
// belongs to somebody else is passed over.
func TokenFile(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		port = "default"
	}
	name := filepath.Join("longshore", "admin-"+port+".token")
	own := fmt.Sprintf("longshore-%d", os.Getuid())
	temporary := filepath.Join(os.TempDir(), own)
	dirs := []string{os.Getenv("XDG_RUNTIME_DIR"), temporary}
	if cache, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, cache)
	}
	for _, dir := range dirs {
		if dir != "" && (ownDir(dir) || dir == temporary && absent(dir)) {
			return filepath.Join(dir, name)
		}
	}
	if len(dirs) > 2 && absent(dirs[2]) {
		return filepath.Join(dirs[2], name)
	}
	return filepath.Join(temporary, name)
}

// ownDir tells whether a directory is this user's and nobody else may write to it.
func ownDir(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && info.Mode().Perm()&0o022 == 0 && ownedByUs(info)
}

func absent(dir string) bool {
	_, err := os.Lstat(dir)
	return errors.Is(err, os.ErrNotExist)
}

// writeToken makes a token and lets only this user read it.
func writeToken(path string) (token string, err error) {
	fail := func(err error) error {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "write the admin token", Err: err, Hint: "set TokenFile or Operators"}
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fail(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o022 != 0 {
		return "", fail(errors.Join(err, fmt.Errorf("others may write to %s", dir)))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fail(err)
	}
	// Exclusive: a link that somebody put there is not followed.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fail(err)
	}
	token = rand.Text()
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fail(err)
	}
	return token, nil
}
