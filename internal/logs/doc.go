// Package logs has what the log lines of several packages share. Their phrases and
// fields are listed in docs/reference/logs.md.
//
//	log.Warn("outbox relay failed", logs.Failure(err)...)
package logs
