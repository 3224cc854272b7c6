// Package logging lets a program that logs with log/slog give its logger to Longshore,
// whose configurations take a [zap.Logger]:
//
//	container.Config{Logger: logging.Slog(slog.Default())}
//
// Lines, levels and field names stay those of docs/reference/logs.md.
package logging
