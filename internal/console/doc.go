// Package console is the page on which people watch and steer containers. It is a client
// of the admin API, of one instance or of several (`instance` in its answers). It is the
// same for all callers and has no secrets: everything it shows comes from the API.
//
//	page := console.Handler()
//	mux.Handle("GET /{$}", page)
//	mux.Handle("GET /console/", page)
//
// Its addresses are relative, so it works under any prefix: at PREFIX/ the page, below
// PREFIX/console/ its files, below PREFIX/api/ the API.
//
// In reading order: console.go serves the files; in assets index.html comes first, then app.js,
// store.js (what is known), and one file for each view.
package console
