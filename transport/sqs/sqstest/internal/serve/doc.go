// Command serve runs an SQS server until its end is asked for, for clients that
// are not written in Go. It prints the server's URL.
//
//	go run ./transport/sqs/sqstest/internal/serve
package main
