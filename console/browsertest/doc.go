// Package browsertest drives the live console in a headless Chromium. It is a module of its
// own, so that the library does not depend on a browser's protocol.
//
//	make test-browser    # all tests
//	make screenshots     # takes the pictures of the docs again
//
// CHROME names the browser; without it the usual names are looked for. A browser that is
// missing skips the tests, with LONGSHORE_BROKERS=required it fails them.
package browsertest
