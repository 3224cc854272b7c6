// Command exactlyonce pays each order once, although the processes that do it are
// killed at random with SIGKILL and every third message is published twice.
//
//	go run ./examples/exactlyonce
//
// It needs nothing: the database is SQLite in a temporary file, the broker an AMQP
// server in this process. Two other processes consume; each is this program again.
package main
