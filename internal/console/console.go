package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assets embed.FS

// Policy is the content security policy of the page: no inline code, nothing from other
// hosts, in no frame.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is one asset.
type file struct {
	body []byte
	kind string
	tag  string
}

// Handler serves the page at "/" and its files below "/console/"; everything else is not
// found. Mount it at "GET /{$}" and "GET /console/".
func Handler() http.Handler {
	files := map[string]file{}
	_ = fs.WalkDir(assets, "assets", func(name string, d fs.DirEntry, err error) error { // embedded: it cannot fail
		if err != nil || d.IsDir() {
			return err
		}
		body, err := assets.ReadFile(name)
		sum := sha256.Sum256(body)
		kind := mime.TypeByExtension(path.Ext(name))
		if path.Ext(name) == ".js" {
			kind = "text/javascript; charset=utf-8" // a system may call it otherwise
		}
		files["/console/"+strings.TrimPrefix(name, "assets/")] = file{body, kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
		return err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path
		if name == "/" || name == "" {
			name = "/console/index.html"
		}
		f, ok := files[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		head := w.Header()
		head.Set("Content-Security-Policy", Policy)
		head.Set("Content-Type", f.kind)
		head.Set("Cache-Control", "no-cache") // revalidated each time, sent only when it has changed
		head.Set("ETag", f.tag)
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		if r.Header.Get("If-None-Match") == f.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(f.body) // the client is gone
	})
}
